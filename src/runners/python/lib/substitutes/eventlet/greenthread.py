import threading
import time


class GreenThread(object):
    """A function that runs in a thread; the thread does not keep the process alive."""

    def __init__(self, function, args, kwargs, after=0):
        self._value = None
        self._problem = None
        self._canceled = threading.Event()
        self._ended = threading.Event()
        self._listeners = []
        self._thread = threading.Thread(target=self._run, args=(function, args, kwargs, after))
        self._thread.daemon = True
        self._thread.start()

    def _run(self, function, args, kwargs, after):
        try:
            if not (after and self._canceled.wait(after)):
                self._value = function(*args, **kwargs)
        except BaseException as problem:
            self._problem = problem
            import traceback

            traceback.print_exc()
        self._ended.set()
        for function, more, named in self._listeners:
            function(self, *more, **named)

    def wait(self):
        """Returns the value of the function, or raises what it raised."""
        self._ended.wait()
        if self._problem is not None:
            raise self._problem
        return self._value

    def link(self, function, *args, **kwargs):
        if self._ended.is_set():
            function(self, *args, **kwargs)
        else:
            self._listeners.append((function, args, kwargs))

    def cancel(self, *_):
        """Only before it has begun: a running thread cannot be ended."""
        self._canceled.set()

    kill = cancel

    @property
    def dead(self):
        return self._ended.is_set()

    def __bool__(self):
        return not self._ended.is_set()


def kill(thread, *_):
    thread.cancel()


def sleep(seconds=0):
    time.sleep(seconds or 0)


def spawn(function, *args, **kwargs):
    return GreenThread(function, args, kwargs)


spawn_n = spawn
