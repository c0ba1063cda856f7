"""Times as text in ISO 8601."""

import datetime
import re

from st2common.util import date

__all__ = ["format", "parse", "validate"]

FORM = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d{3,6})?(Z|[+-]\d\d(:?\d\d)?)?$")


def format(dt, usec=True, offset=True):  # noqa: A001, callers name it
    """Returns the text of a time.

    :param dt: a datetime, or text
    :param usec: with microseconds
    :param offset: with the offset as `+00:00`; otherwise UTC ends in `Z`
    """
    if isinstance(dt, str):
        dt = parse(dt)
    text = dt.strftime("%Y-%m-%dT%H:%M:%S.%f" if usec else "%Y-%m-%dT%H:%M:%S")
    if offset:
        zone = dt.strftime("%z")
        return text + ("{}:{}".format(zone[:3], zone[3:5]) if zone else "+00:00")
    return text + ("Z" if not dt.utcoffset() else "")


def validate(value, raise_exception=True):
    """Returns whether this is a time: a datetime, or text of that form."""
    if isinstance(value, datetime.datetime) or (isinstance(value, str) and FORM.match(value)):
        return True
    if raise_exception:
        raise ValueError("Not a time in ISO 8601: {!r}".format(value))
    return False


def parse(value):
    """Returns the datetime, in UTC without an offset. :raises ValueError: for anything else"""
    validate(value)
    return date.add_utc_tz(value) if isinstance(value, datetime.datetime) else date.parse(value)
