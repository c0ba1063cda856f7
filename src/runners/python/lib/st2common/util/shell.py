"""Programs and their arguments."""

import os
import signal
import subprocess
from shlex import quote as quote_unix

__all__ = ["kill_process", "quote_unix", "quote_windows", "run_command"]


def run_command(
    cmd, stdin=None, stdout=subprocess.PIPE, stderr=subprocess.PIPE, shell=False, cwd=None, env=None, close_fds=True
):
    """Runs a program. Returns its exit code, output and error output as text.

    :param cmd: a list; with `shell` a text
    :param env: all variables; None: those of the action
    """
    process = subprocess.Popen(
        cmd,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        shell=shell,
        cwd=cwd,
        env=dict(os.environ) if env is None else env,
        close_fds=close_fds,
    )
    out, error = process.communicate()
    return process.returncode, _text(out), _text(error)


def quote_windows(value):
    """Returns the value as one argument of a command on Windows."""
    return subprocess.list2cmdline([value])


def kill_process(process):
    """Kills a program and those of its process group. Returns its exit code."""
    try:
        os.killpg(os.getpgid(process.pid), signal.SIGKILL)
    except OSError:
        process.kill()
    return process.wait()


def _text(data):
    return data.decode("utf-8", "replace") if isinstance(data, bytes) else data
