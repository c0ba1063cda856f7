"""Runs one action: `python start.py <folder for bytecode>`. The job comes on stdin, `svc/worker.py` says what it is."""

import gc
import os
import sys
from importlib.machinery import SourceFileLoader

#: What nearly every action needs, directly or through the library it is written with.
USUAL = ("datetime", "random", "uuid", "tempfile", "subprocess", "urllib.request")


def path_stats(_loader, path):
    """What bytecode is kept under instead of the second in which its source was written: that is the same for what is saved
    twice within it, and for all files of many an archive. 32 bits of it are kept."""
    stat = os.stat(path)
    return {"mtime": hash((stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino)) & 0xFFFFFFFF, "size": stat.st_size}


def main():
    import select

    # No longer than until the job is there: an interpreter that waits has the time, one that is waited for has not.
    for name in ("json", "logging", "traceback", "threading", "importlib.util", "resource") + USUAL:
        if name in USUAL and select.select([0], [], [], 0)[0]:
            break
        try:
            __import__(name)
        except ImportError:
            pass
    # From here on: those of Python itself have theirs where they were installed.
    sys.pycache_prefix = sys.argv[1]
    SourceFileLoader.path_stats = path_stats
    # Python leaves it out where PYTHONSAFEPATH is set.
    folder = os.path.dirname(os.path.abspath(__file__))
    if folder not in sys.path:
        sys.path.insert(0, folder)
    from svc import worker

    # What is here now stays to the end: looking for garbage in it took most of the time of a short action, at its end.
    gc.freeze()
    worker.main()


# Whatever starts processes by importing this file again must not start over.
if __name__ == "__main__":
    main()
