"""Errors that packs raise and catch."""


class StackStormBaseException(Exception):
    pass


class StackStormPluginException(StackStormBaseException):
    pass
