from threading import Event, Semaphore

__all__ = ["Event", "Semaphore"]
