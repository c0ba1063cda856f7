"""For sensors that import eventlet without requiring it: the part of its interface that they use, on plain threads.

A pack that lists eventlet in its `requirements.txt` gets the real one.
"""

import threading
import time

from eventlet.greenpool import GreenPile, GreenPool
from eventlet.greenthread import GreenThread
from eventlet.greenthread import kill as kill
from eventlet.timeout import Timeout

__all__ = [
    "GreenPile",
    "GreenPool",
    "Timeout",
    "kill",
    "monkey_patch",
    "sleep",
    "spawn",
    "spawn_after",
    "spawn_n",
]


def monkey_patch(**_):
    """Does nothing: threads need no patches."""


def sleep(seconds=0):
    time.sleep(seconds or 0)


def spawn(function, *args, **kwargs):
    return GreenThread(function, args, kwargs)


def spawn_n(function, *args, **kwargs):
    return GreenThread(function, args, kwargs)


def spawn_after(seconds, function, *args, **kwargs):
    return GreenThread(function, args, kwargs, seconds)


def getcurrent():
    return threading.current_thread()
