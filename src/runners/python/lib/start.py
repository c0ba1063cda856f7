"""Runs one action or sensor: `python start.py <folder for bytecode> [sensor]`. The job arrives on stdin; `svc/worker.py` and
`svc/sensor_worker.py` describe it."""

import gc
import os
import sys
from importlib.machinery import SourceFileLoader

#: Modules that nearly every action needs, directly or through a library.
USUAL = ("datetime", "random", "uuid", "tempfile", "subprocess", "urllib.request")


def path_stats(_loader, path):
    """Replaces the modification time that identifies bytecode. A whole second is the same for a file saved twice within
    it, and for all files of many archives. Python stores 32 bits."""
    stat = os.stat(path)
    return {"mtime": hash((stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino)) & 0xFFFFFFFF, "size": stat.st_size}


def main():
    import select

    # Only until the job arrives: an idle interpreter has the time, a requested one does not.
    for name in ("json", "logging", "traceback", "threading", "importlib.util", "resource") + USUAL:
        if name in USUAL and select.select([0], [], [], 0)[0]:
            break
        try:
            __import__(name)
        except ImportError:
            pass
    # Only from here on: Python's own modules keep their bytecode where they are installed.
    sys.pycache_prefix = sys.argv[1]
    SourceFileLoader.path_stats = path_stats
    # Python omits it when PYTHONSAFEPATH is set.
    folder = os.path.dirname(os.path.abspath(__file__))
    if folder not in sys.path:
        sys.path.insert(0, folder)
    if sys.argv[2:] == ["sensor"]:
        from svc import sensor_worker as worker
    else:
        from svc import worker

    # These objects live to the end: collecting garbage among them took most of the time of a short action.
    gc.freeze()
    worker.main()


# Libraries that start processes import this file again; that must not run another action.
if __name__ == "__main__":
    main()
