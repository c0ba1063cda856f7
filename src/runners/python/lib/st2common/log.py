"""Loggers. They write to the output of the action, from the level in its parameter `log_level`, or of the sensor."""

from logging import CRITICAL, DEBUG, ERROR, FATAL, INFO, NOTSET, WARN, WARNING, Formatter, Handler, Logger, StreamHandler

from svc import log
from svc.log import AUDIT

__all__ = [
    "AUDIT",
    "CRITICAL",
    "DEBUG",
    "ERROR",
    "FATAL",
    "Formatter",
    "Handler",
    "INFO",
    "Logger",
    "NOTSET",
    "StreamHandler",
    "WARN",
    "WARNING",
    "getLogger",
    "setup",
]


def getLogger(name=None):
    """Returns a logger of that name."""
    return log.get_logger(name)


def setup(*_, **__):
    """Does nothing: the server has set up the loggers."""
