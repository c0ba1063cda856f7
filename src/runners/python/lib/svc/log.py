"""Loggers of actions and sensors: `svc.actions.python.<Class>: <LEVEL>   <message>`, on stderr."""

import logging
import sys

ACTIONS = "svc.actions.python"
SENSORS = "svc.sensors"
#: Name of the logger whose children are written: `set_up` knows which.
_root = ACTIONS
#: Between INFO (20) and WARNING (30): user activity, always of interest.
AUDIT = 25

logging.addLevelName(AUDIT, "AUDIT")


def _audit(self, message, *args, **kwargs):
    """Writes a message of the level AUDIT."""
    if self.isEnabledFor(AUDIT):
        self._log(AUDIT, message, args, **kwargs)


logging.Logger.audit = _audit


class _Handler(logging.StreamHandler):
    """Writes to the current stderr, which an action may replace."""

    def __init__(self):
        logging.Handler.__init__(self)

    @property
    def stream(self):
        return sys.stderr


def get_logger(name=None):
    """Returns the logger of that name, a child of the logger of all actions, in a sensor of all sensors; without a name
    that one itself."""
    return logging.getLogger("{}.{}".format(_root, name) if name else _root)


def set_up(level, root):
    """
    :param level: name of the lowest level that is written
    :param root: `ACTIONS` or `SENSORS`, for this process
    """
    global _root
    _root = root
    logger = logging.getLogger(root)
    handler = _Handler()
    handler.setFormatter(logging.Formatter("%(name)s: %(levelname)-8s %(message)s"))
    logger.addHandler(handler)
    logger.setLevel(level)
    # Handlers of the root logger, set up by an action, must not write these messages again.
    logger.propagate = False
