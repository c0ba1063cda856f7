"""Runs actions with the code that runs actions, each in a fork: `python play_results.py <lib> <folder>`.

stdin has a list of sources, stdout a list of `{exit_code, stdout, reply}`.
"""

import json
import os
import sys

lib, folder = sys.argv[1:]
sys.path.insert(0, lib)

from svc import log, worker  # noqa: E402

# Forks get them at no cost.
import collections, dataclasses, datetime, decimal, enum, fractions, ipaddress, pathlib, re, uuid  # noqa: E402, E401, F401

MAX_BYTES = 1 << 20


def play(source, number):
    home = os.path.join(folder, str(number))
    os.makedirs(home)
    path = os.path.join(home, "a.py")
    with open(path, "w", encoding="utf-8", errors="surrogatepass") as file:
        file.write(source)
    names = [os.path.join(home, name) for name in ("stdout", "stderr", "reply")]
    child = os.fork()
    if child == 0:
        code = 99
        try:
            for descriptor, name in enumerate(names, 1):
                opened = os.open(name, os.O_WRONLY | os.O_CREAT)
                os.dup2(opened, descriptor)
            job = {"pack": "g", "file": path, "path": [], "parameters": {}, "config": {}, "env": {}, "mark": None}
            job.update(cwd=home, log_level="DEBUG", page_size=100, max_bytes=MAX_BYTES, packs_paths=[])
            worker.prepare(job, log.ACTIONS)
            code = worker._carry_out(job)
            sys.stdout.flush()
        finally:
            os._exit(code)
    status = os.waitpid(child, 0)[1]
    stdout, _, reply = [open(name, encoding="utf-8").read() for name in names]
    return {"exit_code": os.WEXITSTATUS(status), "stdout": stdout, "reply": reply}


sources = json.load(sys.stdin)
json.dump([play(source, number) for number, source in enumerate(sources)], sys.stdout)
