"""Loggers of actions: `svc.actions.python.<Class>: <LEVEL>   <message>`, on stderr."""

import logging
import sys

ROOT = "svc.actions.python"
SENSORS = "svc.sensors"
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


def get_logger(name):
    """Returns the logger of that name, a child of the logger of all actions."""
    return logging.getLogger(ROOT + "." + name)


def get_sensor_logger(name):
    """Returns the logger of that name, a child of the logger of all sensors."""
    return logging.getLogger(SENSORS + "." + name)


def set_up(level, root=ROOT):
    """
    :param level: name of the lowest level that is written
    """
    logger = logging.getLogger(root)
    handler = _Handler()
    handler.setFormatter(logging.Formatter("%(name)s: %(levelname)-8s %(message)s"))
    logger.addHandler(handler)
    logger.setLevel(level)
    # Handlers of the root logger, set up by an action, must not write these messages again.
    logger.propagate = False
