"""What a returned value becomes in the result of an execution.

A value that JSON can represent stays what it is. Dates, times, UUIDs, enumerations and instances of dataclasses become
their usual JSON form; NaN and the infinities become null. What has no such form becomes text, as a whole.
"""

import sys

#: Levels of lists and objects around a value.
MAX_DEPTH = 253
#: Four for each level.
MAX_FRAMES = 3000
#: A value may have a substitute (`__json__`), which may have one in turn, and so on.
MAX_SUBSTITUTES = 254
#: Of a whole number: 4,299 digits. Neither Python nor the server reads many more.
MAX_INTEGER_BITS = 14280


class NotJson(Exception):
    """The value has no JSON form."""


def to_json(value):
    """Returns the value, made of the types that the module `json` writes without loss.

    :raises NotJson: for a value with a part that has no JSON form
    """
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, MAX_FRAMES))
    try:
        # One level is the object that the value is the result of.
        return _plain(value, 1, 0)
    except RuntimeError:
        # Tuples too deep within each other, or an object that changes while it is read.
        raise NotJson() from None
    finally:
        sys.setrecursionlimit(limit)


def json_or_text(value, make):
    """Returns the JSON form of the value, its text without one. Never raises.

    :param make: makes the text: `repr` or `str`
    """
    try:
        return to_json(value)
    except NotJson:
        pass
    try:
        text = make(value)
    except Exception as problem:
        return "<{} without text: {}>".format(type(value).__name__, type(problem).__name__)
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _plain(value, depth, substitutes):
    kind = type(value)
    if value is None or kind is bool:
        return value
    if kind is str:
        return _text(value)
    if kind is int:
        return _integer(value)
    if kind is float:
        # Neither NaN nor an infinity equals itself minus itself plus zero.
        return value if value - value == 0 else None
    if kind is dict:
        return _object(value, depth, substitutes)
    if kind is list:
        return _array(value, depth, substitutes)
    if kind is tuple:
        # A tuple counts, but may itself be at any depth.
        return [_plain(item, depth + 1, substitutes) for item in value]
    return _other(value, kind, depth, substitutes)


def _text(value):
    if not value.isascii():
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            # A lone surrogate, such as in the name of a file that is no UTF-8.
            raise NotJson() from None
    return value


def _integer(value):
    if value.bit_length() > MAX_INTEGER_BITS:
        raise NotJson()
    return value


def _array(value, depth, substitutes):
    if depth > MAX_DEPTH:
        raise NotJson()
    return [_plain(item, depth + 1, substitutes) for item in value]


def _object(value, depth, substitutes):
    if depth > MAX_DEPTH:
        raise NotJson()
    made = {}
    for name, item in dict.items(value):
        if type(name) is not str:
            # Text is the only kind of name in JSON: 1 and "1" must not become one.
            raise NotJson()
        made[_text(name)] = _plain(item, depth + 1, substitutes)
    return made


def _other(value, kind, depth, substitutes):
    time = _time(value, kind)
    if time is not None:
        return time
    if _is(kind, "uuid", "UUID"):
        return str(value)
    enum = sys.modules.get("enum")
    if enum is not None and type(kind) is enum.EnumMeta:
        return _plain(value.value, depth, substitutes)
    if issubclass(kind, str):
        return _text(str.__str__(value))
    if issubclass(kind, int):
        return _integer(int.__int__(value))
    if issubclass(kind, list):
        return _array(list(list.__iter__(value)), depth, substitutes)
    if issubclass(kind, dict):
        return _object(value, depth, substitutes)
    if "__dataclass_fields__" in vars(kind):
        return _dataclass(value, kind, depth, substitutes)
    if substitutes > MAX_SUBSTITUTES:
        raise NotJson()
    return _plain(_substitute(value, kind), depth, substitutes + 1)


def _is(kind, module, name):
    """Whether the value is of that type; a module that nobody has imported has no values."""
    loaded = sys.modules.get(module)
    return loaded is not None and kind is getattr(loaded, name, None)


def _time(value, kind):
    datetime = sys.modules.get("datetime")
    if datetime is None:
        return None
    if kind is datetime.datetime:
        return _datetime(value)
    if kind is datetime.date:
        return value.isoformat()
    if kind is datetime.time:
        if value.tzinfo is not None:
            # Its offset may depend on the date.
            raise NotJson()
        return value.isoformat()
    return None


def _datetime(value):
    text = value.replace(tzinfo=None).isoformat()
    if value.tzinfo is None:
        return text
    try:
        offset = value.utcoffset()
    except Exception:
        raise NotJson() from None
    seconds = 0 if offset is None else offset.days * 86400 + offset.seconds
    sign = "-" if seconds < 0 else "+"
    # The form has whole minutes, less than a day; offsets of before the standard time zones have seconds.
    minutes = min((abs(seconds) + 30) // 60, 24 * 60 - 1)
    return "{}{}{:02d}:{:02d}".format(text, sign, minutes // 60, minutes % 60)


def _dataclass(value, kind, depth, substitutes):
    if depth > MAX_DEPTH:
        raise NotJson()
    fields = kind.__dataclass_fields__
    if "__slots__" in vars(kind) or not hasattr(value, "__dict__"):
        from dataclasses import _FIELD  # the only way to tell fields from pseudo-fields

        names = [name for name, field in fields.items() if field._field_type is _FIELD]
        members = [(name, getattr(value, name)) for name in names]
    else:
        members = list(value.__dict__.items())
    made = {}
    for name, item in members:
        if type(name) is not str:
            raise NotJson()
        if not name.startswith("_"):
            made[_text(name)] = _plain(item, depth + 1, substitutes)
    return made


def _substitute(value, kind):
    try:
        if callable(getattr(value, "__json__", None)):
            return value.__json__()
        if isinstance(value, bytes):
            return value.decode("utf-8")
    except Exception:
        raise NotJson() from None
    if kind.__name__ == "ObjectId" and kind.__module__ == "bson.objectid":
        return str(value)
    raise NotJson()
