"""Locks among the actions and sensors of this machine.

StackStorm has locks only where a coordination backend is configured. Here they always hold, among the processes of one
user on one machine; the system frees them when the process ends.
"""

import fcntl
import hashlib
import os
import tempfile
import threading

__all__ = ["get_coordinator", "coordinator_setup", "coordinator_teardown"]

#: Descriptor of the file whose bytes are the locks, one per name: no name leaves anything behind. It stays open, as
#: closing it would free all locks of the process.
_file = []
_guard = threading.Lock()
_threads = {}


def _descriptor():
    with _guard:
        if not _file:
            # Another user cannot take the name away: a file that is not ours is refused.
            path = os.path.join(tempfile.gettempdir(), "svc-locks-{}".format(os.getuid()))
            opened = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            if os.fstat(opened).st_uid != os.getuid():
                os.close(opened)
                raise RuntimeError("Cannot lock: {} belongs to another user. Remove it.".format(path))
            _file.append(opened)
        return _file[0]


class Lock(object):
    """A lock of that name, for one thread of one process at a time."""

    def __init__(self, name):
        self.name = name if isinstance(name, str) else name.decode("utf-8")
        digest = hashlib.sha256(self.name.encode("utf-8")).digest()
        self._byte = int.from_bytes(digest[:7], "big")
        with _guard:
            self._thread = _threads.setdefault(self.name, threading.Lock())

    def acquire(self, blocking=True):
        """Returns whether the lock is held now."""
        if not self._thread.acquire(blocking):
            return False
        try:
            how = fcntl.LOCK_EX if blocking else fcntl.LOCK_EX | fcntl.LOCK_NB
            fcntl.lockf(_descriptor(), how, 1, self._byte)
        except (BlockingIOError, PermissionError):
            self._thread.release()
            return False
        except BaseException:
            self._thread.release()
            raise
        return True

    def release(self):
        fcntl.lockf(_descriptor(), fcntl.LOCK_UN, 1, self._byte)
        self._thread.release()
        return True

    def __enter__(self):
        self.acquire()
        return self

    def __exit__(self, *_):
        self.release()


class Coordinator(object):
    def get_lock(self, name):
        return Lock(name)


def get_coordinator(start_heart=True, use_cache=True):  # noqa: ARG001, callers give them
    """Returns what makes locks."""
    return Coordinator()


def coordinator_setup(start_heart=True):
    return get_coordinator(start_heart)


def coordinator_teardown(coordinator=None):
    """Nothing is left to end."""
