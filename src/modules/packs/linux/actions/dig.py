import random
import subprocess

from svc.action import Action


class Dig(Action):
    """The lines that dig prints."""

    def run(self, hostname, nameserver=None, querytype="A", queryopts="short", rand=False, count=0):
        for name, value in (("hostname", hostname), ("querytype", querytype), ("nameserver", nameserver)):
            if value and value[0] in "-+@":
                raise ValueError('%s must not begin with "%s"' % (name, value[0]))
        command = ["dig"]
        if nameserver:
            command.append("@" + nameserver)
        command += ["-q", hostname, "-t", querytype]
        command += ["+" + option.strip() for option in queryopts.split(",") if option.strip()]
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, universal_newlines=True)
        except FileNotFoundError:
            raise RuntimeError("The program dig is missing on this machine. Install bind9-dnsutils, or bind-utils.")
        if done.returncode != 0:
            raise RuntimeError("dig failed with exit code %d: %s" % (done.returncode, (done.stderr or done.stdout).strip()))
        lines = [line for line in done.stdout.splitlines() if line]
        if rand:
            random.shuffle(lines)
        return lines[:count] if count > 0 else lines
