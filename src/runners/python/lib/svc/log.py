"""Loggers of actions: `svc.actions.python.<Class>: <LEVEL>   <message>`, on stderr."""

import logging
import sys

ROOT = "svc.actions.python"
#: Between INFO (20) and WARNING (30): what people did, whatever else is of interest.
AUDIT = 25

logging.addLevelName(AUDIT, "AUDIT")


class _Handler(logging.StreamHandler):
    """Writes to what stderr is at the time, which an action may change."""

    def __init__(self):
        logging.Handler.__init__(self)

    @property
    def stream(self):
        return sys.stderr


def get_logger(name):
    """The logger of that name below the one of all actions."""
    return logging.getLogger(ROOT + "." + name)


def set_up(level):
    """
    :param level: name of the least severe level that is written
    """
    logger = logging.getLogger(ROOT)
    handler = _Handler()
    handler.setFormatter(logging.Formatter("%(name)s: %(levelname)-8s %(message)s"))
    logger.addHandler(handler)
    logger.setLevel(level)
    # What an action logs by other names goes its own ways, and never here twice.
    logger.propagate = False
