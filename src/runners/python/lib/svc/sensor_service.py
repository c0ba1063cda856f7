"""What a sensor gets to dispatch triggers, and to use the datastore and its logger."""

import json
import os
import threading
import time

from svc import action_service, log
from svc.result import NotJson, to_json

#: Dispatches that the server has not stored yet; `dispatch` waits while there are so many.
MAX_UNSTORED = 100
#: Bytes of one dispatch.
MAX_LINE_BYTES = 1024 * 1024
#: Characters that explain why a dispatch is dropped.
MAX_PROBLEM = 1000
#: Seconds after which a dispatch without an answer is sent again.
REPEAT_AFTER = 30
#: Seconds for which a request waits for a server that is not ready.
READY_WITHIN = 10


class Channel(object):
    """The two pipes to the server: one JSON object per line.

    The locks are plain ones: libraries that replace threads by others leave these alone.
    """

    def __init__(self, fd, clock=time.monotonic):
        self._fd = fd
        self._clock = clock
        self._writing = threading.Lock()
        self._changed = threading.Condition(threading.Lock())
        #: id -> (line, when it was sent)
        self._unstored = {}
        self._number = 0
        self._is_closed = False
        self._is_torn = False
        self._prefix = "{:x}-{:x}-".format(os.getpid(), int(time.time() * 1000000))

    def dispatch(self, fields):
        """Sends a dispatch; waits while too many are not stored. Returns its id."""
        with self._changed:
            while len(self._unstored) >= MAX_UNSTORED and not self._is_closed:
                self._changed.wait()
            self._number += 1
            name = self._prefix + str(self._number)
            line = _encode(dict(fields, id=name))
            self._unstored[name] = (line, self._clock())
        self._write(line)
        return name

    def send(self, fields):
        self._write(_encode(fields))

    def stored(self, name):
        """The server has stored a dispatch, or refused it for good."""
        with self._changed:
            self._unstored.pop(name, None)
            self._changed.notify_all()

    def repeat(self, after=REPEAT_AFTER):
        """Sends again what has had no answer for that many seconds."""
        now = self._clock()
        with self._changed:
            late = [(name, line) for name, (line, at) in self._unstored.items() if now - at >= after]
            for name, line in late:
                self._unstored[name] = (line, now)
        for _, line in late:
            self._write(line)

    def flush(self, timeout=None):
        """Waits until the server has stored all that was dispatched. Returns whether it has."""
        end = None if timeout is None else self._clock() + timeout
        with self._changed:
            while self._unstored and not self._is_closed:
                left = None if end is None else end - self._clock()
                if left is not None and left <= 0:
                    break
                self._changed.wait(left)
            return not self._unstored

    def close(self):
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def _write(self, line):
        with self._writing:
            # A signal that ended the last write leaves the beginning of a line.
            view = memoryview(b"\n" + line if self._is_torn else line)
            self._is_torn = True
            while view:
                view = view[os.write(self._fd, view) :]
            self._is_torn = False


class SensorService(object):
    """Given to the constructor of a sensor as `sensor_service`.

    `local` prefixes names of keys with the namespace of the sensor `<pack>.<Class>:`.
    """

    def __init__(self, pack, class_name, channel, page_size=100):
        self._class_name = class_name
        self._channel = channel
        self._keys = _Keys(pack, class_name, page_size, channel)

    @property
    def datastore_service(self):
        """The methods for keys alone."""
        return self._keys

    def get_logger(self, name):
        """Returns a logger; what it writes is the output of the sensor."""
        return log.get_logger("{}.{}".format(self._class_name, name))

    def get_user_info(self):
        """Returns the user of sensors, as GET /user does: `username`, `authentication`, `rbac`."""
        return self._keys.get_user_info()

    def dispatch(self, trigger, payload=None, trace_tag=None):
        """Dispatches a trigger. It is stored soon; `flush` and `set_value` wait for that.

        :param trigger: reference of a trigger or trigger type, or a trigger that `add_trigger` got
        :param payload: a dictionary
        :param trace_tag: tag of the trace that it belongs to
        """
        context = None if trace_tag is None else {"trace_tag": trace_tag}
        self.dispatch_with_context(trigger, payload, context)

    def dispatch_with_context(self, trigger, payload=None, trace_context=None):
        """Dispatches a trigger.

        :param trace_context: a dictionary with `trace_tag` or `id_`, or an object with these attributes
        """
        fields = {"type": "dispatch", "trigger": _trigger_of(trigger), "payload": {} if payload is None else payload}
        for name in ("trace_tag", "id_"):
            value = (
                trace_context.get(name) if isinstance(trace_context, dict) else getattr(trace_context, name, None)
            )
            if value is not None:
                fields["trace_id" if name == "id_" else name] = value
        try:
            self._channel.dispatch(fields)
        except (TypeError, ValueError, OverflowError, RecursionError) as problem:
            # The server counts it, and says so in the output.
            said = "the payload cannot be sent: {} (trigger {})".format(problem, fields["trigger"])
            if len(said) > MAX_PROBLEM:
                said = said[:MAX_PROBLEM] + "\u2026"
            self._channel.send({"type": "dropped", "problem": said})

    def flush(self, timeout=None):
        """Waits until the server has stored everything dispatched before. Returns whether it has.

        :param timeout: seconds; None: no limit
        """
        return self._channel.flush(timeout)

    def list_values(self, local=True, prefix=None, limit=None, offset=0):
        return self._keys.list_values(local, prefix, limit, offset)

    def get_value(self, name, local=True, scope="system", decrypt=False):
        return self._keys.get_value(name, local, scope, decrypt)

    def set_value(self, name, value, ttl=None, local=True, scope="system", encrypt=False):
        return self._keys.set_value(name, value, ttl, local, scope, encrypt)

    def delete_value(self, name, local=True, scope="system"):
        return self._keys.delete_value(name, local, scope)


class _Keys(action_service.ActionService):
    """Keys with the token of the sensor. Before a change, everything dispatched is stored: a place that a sensor
    remembers never runs ahead of its triggers."""

    def __init__(self, pack, class_name, page_size, channel):
        action_service.ActionService.__init__(self, pack, class_name, page_size)
        self._channel = channel

    def get_user_info(self):
        return _when_ready(action_service.ActionService.get_user_info, self)

    def list_values(self, local=True, prefix=None, limit=None, offset=0):
        return _when_ready(action_service.ActionService.list_values, self, local, prefix, limit, offset)

    def get_value(self, name, local=True, scope="system", decrypt=False):
        return _when_ready(action_service.ActionService.get_value, self, name, local, scope, decrypt)

    def set_value(self, name, value, ttl=None, local=True, scope="system", encrypt=False):
        self._channel.flush()
        return _when_ready(action_service.ActionService.set_value, self, name, value, ttl, local, scope, encrypt)

    def delete_value(self, name, local=True, scope="system"):
        self._channel.flush()
        return _when_ready(action_service.ActionService.delete_value, self, name, local, scope)


def _when_ready(call, *args):
    """Sensors start with the server, which may not answer yet."""
    end = time.monotonic() + READY_WITHIN
    while True:
        try:
            return call(*args)
        except action_service.ServiceError as error:
            if error.status not in (None, 503) or time.monotonic() >= end:
                raise
        time.sleep(0.1)


def _trigger_of(trigger):
    if isinstance(trigger, dict):
        return {name: trigger[name] for name in ("id", "ref", "pack", "name", "type", "parameters") if name in trigger}
    return trigger


def _encode(fields):
    try:
        fields = to_json(fields)
    except NotJson:
        pass
    line = json.dumps(fields, allow_nan=False, default=_plain).encode("ascii") + b"\n"
    if len(line) > MAX_LINE_BYTES:
        raise ValueError("it has {} bytes, {} are allowed".format(len(line), MAX_LINE_BYTES))
    return line


def _plain(value):
    if isinstance(value, (set, frozenset)):
        return list(value)
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode("utf-8", "backslashreplace")
    if hasattr(value, "keys"):
        return dict(value)
    try:
        return to_json(value)
    except NotJson:
        raise TypeError("{} is not JSON data".format(type(value).__name__)) from None
