#!/usr/bin/env python3
import json
import os
import re
import sys


def read_process(pid):
    """The state, session and command line of a process; None if it has ended."""
    folder = os.path.join("/proc", pid)
    try:
        with open(os.path.join(folder, "stat"), errors="replace") as file:
            # The name of the program is in brackets, and may contain some.
            program, _, rest = file.read().partition("(")[2].rpartition(")")
        with open(os.path.join(folder, "cmdline"), errors="replace") as file:
            command = file.read().replace("\0", " ").strip()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = rest.split()
    return {"state": fields[0], "session": fields[3], "command": command or "[%s]" % program}


def main(search="name", criteria="", args=""):
    if search == "name":
        try:
            pattern = re.compile(criteria)
        except re.error as error:
            sys.exit("criteria is no regular expression: %s" % error)
    elif not criteria:
        sys.exit("criteria is missing: the %s to look for" % search)
    own = str(os.getsid(0))
    found = {}
    for pid in sorted((name for name in os.listdir("/proc") if name.isdigit()), key=int):
        process = read_process(pid)
        # The shells that started this program have the criteria in their command lines.
        if process is None or process["session"] == own:
            continue
        if search == "name":
            fits = pattern.search(process["command"])
        else:
            fits = criteria == (pid if search == "pid" else process["state"])
        if fits:
            found[pid] = process["command"]
    if "pidlist" in args.split():
        sys.stderr.write(" ".join(found))
    print(json.dumps(found))


main(*sys.argv[1:])
