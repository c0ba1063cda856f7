class Timeout(BaseException):
    """Accepted and without effect: nothing can interrupt a thread."""

    def __init__(self, seconds=None, exception=None):
        super(Timeout, self).__init__(seconds)
        self.seconds = seconds
        self.exception = exception

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False

    def cancel(self):
        pass
