import threading

from eventlet.greenthread import GreenThread


class GreenPool(object):
    """At most `size` functions at once; `spawn` waits for room."""

    def __init__(self, size=1000):
        self.size = size
        self._room = threading.Semaphore(size)
        self._lock = threading.Lock()
        self._running = set()

    def spawn(self, function, *args, **kwargs):
        self._room.acquire()
        thread = GreenThread(self._run, (function, args, kwargs), {})
        with self._lock:
            self._running = {one for one in self._running if not one.dead} | {thread}
        return thread

    def spawn_n(self, function, *args, **kwargs):
        self.spawn(function, *args, **kwargs)

    def _run(self, function, args, kwargs):
        try:
            return function(*args, **kwargs)
        finally:
            self._room.release()

    def running(self):
        with self._lock:
            return sum(1 for one in self._running if not one.dead)

    def free(self):
        return self.size - self.running()

    def waitall(self):
        with self._lock:
            running = list(self._running)
        for thread in running:
            try:
                thread.wait()
            except BaseException:
                # It has printed its traceback.
                pass

    def imap(self, function, *iterables):
        threads = [self.spawn(function, *args) for args in zip(*iterables)]
        return (thread.wait() for thread in threads)

    def starmap(self, function, iterable):
        threads = [self.spawn(function, *args) for args in iterable]
        return (thread.wait() for thread in threads)


class GreenPile(object):
    """The results of functions, in the order in which they were spawned."""

    def __init__(self, size_or_pool=1000):
        self.pool = size_or_pool if isinstance(size_or_pool, GreenPool) else GreenPool(size_or_pool)
        self._threads = []

    def spawn(self, function, *args, **kwargs):
        self._threads.append(self.pool.spawn(function, *args, **kwargs))

    def __iter__(self):
        return self

    def __next__(self):
        if not self._threads:
            raise StopIteration
        return self._threads.pop(0).wait()

    next = __next__
