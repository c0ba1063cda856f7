"""Points in time."""

import datetime

__all__ = ["add_utc_tz", "convert_to_utc", "get_datetime_utc_now", "parse"]

UTC = datetime.timezone.utc


def get_datetime_utc_now():
    return datetime.datetime.now(UTC)


def add_utc_tz(dt):
    """Returns a time without a zone as one in UTC, another one as it is."""
    if dt.tzinfo is not None and dt.utcoffset() != datetime.timedelta(0):
        return dt
    return dt.replace(tzinfo=UTC)


def convert_to_utc(dt):
    return add_utc_tz(dt).astimezone(UTC)


def parse(value):
    """Reads a time in ISO 8601; in UTC without an offset."""
    text = str(value).strip()
    if text.endswith(("Z", "z")):
        text = text[:-1] + "+00:00"
    return add_utc_tz(_read(text))


def _read(text):
    try:
        return datetime.datetime.fromisoformat(text)
    except ValueError:
        pass
    import re

    # Older Pythons read whole offsets, and three or six decimals only.
    found = re.match(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(?:([+-]\d\d):?(\d\d)?)?$", text)
    if not found:
        raise ValueError("Not a time in ISO 8601: {!r}".format(text))
    day, time, decimals, hours, minutes = found.groups()
    whole = "{}T{}.{}".format(day, time, (decimals or "").ljust(6, "0")[:6])
    return datetime.datetime.fromisoformat(whole + ("{}:{}".format(hours, minutes or "00") if hours else ""))
