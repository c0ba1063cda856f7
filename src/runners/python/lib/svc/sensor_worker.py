"""Runs one sensor in this process until it ends or is stopped.

The server writes lines of JSON to stdin. The first is the job:

    pack, class_name, file   of the sensor; `path` lists further folders to import from
    config                   configuration of the pack
    poll_interval            seconds, or null for a sensor that runs by itself
    triggers                 the triggers of its types
    env, cwd, mark, log_level, packs_paths, page_size    as in `svc/worker.py`

Then follow `{"type": "stored", "id"}` for each dispatch, `{"type": "add_trigger" | "update_trigger" | "remove_trigger",
"trigger"}`. At the end of stdin the server is gone, and this process ends.

Descriptor 3 goes to the server, a line of JSON each: `{"type": "ready"}` after setup(), and dispatches
`{"type": "dispatch", "id", "trigger", "payload", "trace_tag"?, "trace_id"?}`, or `{"type": "dropped", "problem"}` for one
that cannot be sent. stdout and stderr are the output of the sensor.
"""

import json
import os
import signal
import sys
import threading

from svc import log, worker
from svc.config import PackConfigDict
from svc.sensor import pause
from svc.sensor_service import Channel, SensorService

CHANNEL_FD = 3
#: Seconds for cleanup() after the server has gone.
CLEANUP_SECONDS = 2
#: Seconds between two looks for dispatches without an answer.
REPEAT_EVERY = 5


class Stopped(BaseException):
    """The server stops the sensor. No `Exception`, so that a sensor that catches those is stopped all the same."""


def main():
    os.set_inheritable(CHANNEL_FD, False)
    lines = _Lines(_take_stdin())
    job = lines.next()
    if job is None:
        os._exit(0)
    worker.prepare(job, log.SENSORS)
    _add_substitutes()
    channel = Channel(CHANNEL_FD)
    service = SensorService(job["pack"], job["class_name"], channel, job["page_size"])
    run = _Run(job, service, channel, lines)
    sys.exit(run.carry_out())


class _Run(object):
    def __init__(self, job, service, channel, lines):
        self._job = job
        self._service = service
        self._channel = channel
        self._lines = lines
        self._sensor = None
        self._is_over = False
        self._changes = []
        self._has_changes = threading.Semaphore(0)
        #: Held while the sensor polls, and while it gets triggers.
        self._turn = threading.Lock()
        self._polls = job["poll_interval"] is not None
        self._logger = log.get_logger(job["class_name"])

    def carry_out(self):
        """Returns the exit code."""
        code = 0
        try:
            signal.signal(signal.SIGTERM, self._stop)
            _start_thread(self._read)
            _start_thread(self._repeat)
            self._run()
        except Stopped:
            pass
        except SystemExit as end:
            code = worker.code_of(end)
        except worker.Refused as problem:
            self._logger.error("%s", problem)
            code = problem.code
        except BaseException as problem:
            self._is_over = True
            import traceback

            traceback.print_exception(type(problem), problem, _frames_of_the_sensor(problem))
            code = 1
        self._is_over = True
        if self._sensor is not None:
            self._clean_up()
        self._channel.repeat(0)
        self._channel.flush(CLEANUP_SECONDS)
        sys.stdout.flush()
        sys.stderr.flush()
        # Threads of the sensor must not keep a sensor alive that has ended.
        os._exit(code)

    def _run(self):
        if self._job["cwd"]:
            os.chdir(self._job["cwd"])
        found = self._find_class()
        self._sensor = self._make(found)
        self._call("setup")
        for trigger in self._job["triggers"]:
            self._call("add_trigger", trigger)
        _start_thread(self._change)
        self._channel.send({"type": "ready"})
        if not self._polls:
            if not callable(getattr(self._sensor, "run", None)):
                raise worker.Refused('The sensor class "{}" has no method run().'.format(found.__name__))
            self._sensor.run()
            return
        if not callable(getattr(self._sensor, "poll", None)):
            raise worker.Refused(
                'The sensor class "{}" has a poll_interval and no method poll().'.format(found.__name__)
            )
        while True:
            with self._turn:
                self._sensor.poll()
            pause(self._interval())

    def _interval(self):
        get = getattr(self._sensor, "get_poll_interval", None)
        interval = get() if callable(get) else getattr(self._sensor, "_poll_interval", None)
        return self._job["poll_interval"] if interval is None else interval

    def _find_class(self):
        module = worker.load(self._job["file"], self._job["path"], "sensor")
        found = getattr(module, self._job["class_name"], None)
        if not isinstance(found, type):
            raise worker.Refused(
                'The file "{}" defines no class "{}".'.format(
                    os.path.basename(self._job["file"]), self._job["class_name"]
                )
            )
        return found

    def _make(self, found):
        given = {"sensor_service": self._service, "config": PackConfigDict(self._job["pack"], self._job["config"])}
        if self._polls:
            given["poll_interval"] = self._job["poll_interval"]
        try:
            return found(**given)
        except TypeError as problem:
            # The class names them otherwise, or has no use for the last one.
            if "unexpected keyword argument" not in str(problem) or problem.__traceback__.tb_next is not None:
                raise
        values = list(given.values())
        try:
            return found(*values)
        except TypeError as problem:
            if problem.__traceback__.tb_next is not None or not self._polls:
                raise
        return found(*values[:2])

    def _call(self, name, *args):
        method = getattr(self._sensor, name, None)
        if callable(method):
            method(*args)

    def _clean_up(self):
        try:
            self._call("cleanup")
        except BaseException:
            import traceback

            traceback.print_exc()

    def _stop(self, _number, _frame):
        if not self._is_over:
            self._is_over = True
            raise Stopped()

    def _read(self):
        """What the server says, up to its end."""
        while True:
            message = self._lines.next()
            if message is None:
                break
            if message["type"] == "stored":
                self._channel.stored(message["id"])
            elif message["type"] in ("add_trigger", "update_trigger", "remove_trigger"):
                self._changes.append(message)
                self._has_changes.release()
        self._channel.close()
        # The server has gone: so does this process, and what it has started.
        os.kill(os.getpid(), signal.SIGTERM)
        threading.Event().wait(CLEANUP_SECONDS)
        try:
            os.killpg(os.getpgrp(), signal.SIGKILL)
        finally:
            os._exit(1)

    def _change(self):
        while True:
            self._has_changes.acquire()
            message = self._changes.pop(0)
            with self._turn:
                try:
                    self._call(message["type"], message["trigger"])
                except Exception:
                    import traceback

                    traceback.print_exc()

    def _repeat(self):
        wait = threading.Event()
        while True:
            wait.wait(REPEAT_EVERY)
            try:
                self._channel.repeat()
            except OSError:
                return


class _Lines(object):
    """JSON objects from a descriptor, one per line."""

    def __init__(self, fd):
        self._fd = fd
        self._rest = b""

    def next(self):
        """None at the end."""
        pieces = [self._rest]
        while b"\n" not in pieces[-1]:
            piece = os.read(self._fd, 1 << 16)
            if not piece:
                return None
            pieces.append(piece)
        line, self._rest = b"".join(pieces).split(b"\n", 1)
        return json.loads(line)


def _frames_of_the_sensor(problem):
    """Drops the leading frames of the server and of the import system; None when no others are left."""
    frames = problem.__traceback__
    own = (os.path.dirname(os.path.abspath(__file__)), "<frozen importlib")
    while frames is not None and frames.tb_frame.f_code.co_filename.startswith(own):
        frames = frames.tb_next
    return frames


def _take_stdin():
    """Another descriptor for stdin, which the sensor must not read."""
    fd = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return fd


def _start_thread(target):
    thread = threading.Thread(target=target)
    thread.daemon = True
    thread.start()


def _add_substitutes():
    """Last in the path: modules for packs that expect them without requiring them."""
    sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "substitutes"))
