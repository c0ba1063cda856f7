from queue import Empty, Full, LifoQueue, PriorityQueue, Queue

__all__ = ["Empty", "Full", "LifoQueue", "PriorityQueue", "Queue"]
