"""Errors of the store."""

from st2common.exceptions import StackStormBaseException


class StackStormDBObjectNotFoundError(StackStormBaseException):
    pass


class StackStormDBObjectMalformedError(StackStormBaseException):
    pass


class StackStormDBObjectConflictError(StackStormBaseException):
    pass


class StackStormDBObjectWriteConflictError(StackStormBaseException):
    pass
