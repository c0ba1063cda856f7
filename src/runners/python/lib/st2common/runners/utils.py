"""Loggers of actions."""

from svc import log

__all__ = ["get_logger_for_python_runner_action"]


def get_logger_for_python_runner_action(action_name, log_level=None):  # noqa: ARG001, the execution has it
    """Returns the logger of an action."""
    return log.get_logger(action_name)
