"""Older name of `st2client.models.keyvalue`."""

from st2client.models.keyvalue import KeyValuePair

__all__ = ["KeyValuePair"]
