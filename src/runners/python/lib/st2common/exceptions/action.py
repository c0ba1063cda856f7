"""Errors of actions."""

from st2common.exceptions import StackStormBaseException


class InvalidActionReferencedException(StackStormBaseException):
    pass


class InvalidActionParameterException(StackStormBaseException):
    pass


class ParameterRenderingFailedException(StackStormBaseException):
    pass


class ActionRunnerException(StackStormBaseException):
    pass
