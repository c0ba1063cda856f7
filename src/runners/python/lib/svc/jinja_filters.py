"""The filters that templates have besides those of Jinja, for `st2common.util.jinja`. They do what those of the server do."""

import json
import math
import os.path
import re
from functools import partial

from svc.elsewhere import unavailable

#: Text that stands for None in a template, which makes text of everything.
NONE = "%*****__%NONE%__*****%"

VERSION = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(?:-((?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?"
    r"(?:\+[0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*)?",
    re.ASCII,
)
COMPARISON = re.compile(r"\s*(<=|>=|==|!=|<|>)?\s*(\S+)\s*")
HOLDS = {
    "<": lambda order: order < 0,
    "<=": lambda order: order <= 0,
    ">": lambda order: order > 0,
    ">=": lambda order: order >= 0,
    "!=": lambda order: order != 0,
    "==": lambda order: order == 0,
}
UNITS = (("y", 365 * 86400), ("d", 86400), ("h", 3600), ("m", 60), ("s", 1))


def _to_yaml(value, indent=None, allow_unicode=True):
    from st2common.util.pack import import_yaml

    return import_yaml().safe_dump(value, indent=indent, default_flow_style=False, allow_unicode=allow_unicode)


def _from_yaml(value):
    from st2common.util.pack import import_yaml

    return import_yaml().safe_load(value)


def _to_json(value, indent=None, sort_keys=False, separators=(",", ": ")):
    return json.dumps(value, indent=indent, sort_keys=sort_keys, separators=tuple(separators))


def _jsonpath(value, query):
    """Returns the list of what a JSONPath query selects, None when that is nothing."""
    try:
        from jsonpath_ng import parse
    except ImportError:
        try:
            from jsonpath_rw import parse
        except ImportError:
            raise ImportError("jsonpath_query: add jsonpath-ng to the requirements.txt of the pack.") from None
    return [match.value for match in parse(query).find(value)] or None


def _flags(ignorecase, multiline):
    return (re.IGNORECASE if ignorecase else 0) | (re.MULTILINE if multiline else 0)


def _match(value, pattern="", ignorecase=False, multiline=False):
    return bool(re.match(pattern, value, _flags(ignorecase, multiline)))


def _search(value, pattern="", ignorecase=False, multiline=False):
    return bool(re.search(pattern, value, _flags(ignorecase, multiline)))


def _replace(value="", pattern="", replacement="", ignorecase=False):
    return re.sub(pattern, replacement, value, flags=_flags(ignorecase, False))


def _substring(value, pattern="", result_index=0, ignorecase=False, multiline=False):
    return re.findall(pattern, value, _flags(ignorecase, multiline))[result_index]


def _version(text):
    """Returns major, minor and patch, and what orders pre-releases: before their release, numbers before names."""
    found = VERSION.fullmatch(str(text))
    if found is None:
        raise ValueError('"{}" is not a semantic version such as 1.2.3.'.format(text))
    before = found.group(4)
    names = [(0, int(one), "") if one.isdigit() else (1, 0, one) for one in before.split(".")] if before else None
    return [int(one) for one in found.group(1, 2, 3)], (1, []) if names is None else (0, names)


def _compare(value, pattern):
    one, other = _version(value), _version(pattern)
    return (one > other) - (one < other)


def _holds(operator, value, pattern):
    return HOLDS[operator](_compare(value, pattern))


def _version_match(value, pattern):
    found = COMPARISON.fullmatch(pattern)
    if found is None:
        raise ValueError('"{}" is not a comparison such as >=1.2.3.'.format(pattern))
    return _holds(found.group(1) or "==", value, found.group(2))


def _bump(place, value):
    numbers = _version(value)[0]
    return ".".join(str(one) for one in numbers[:place] + [numbers[place] + 1] + [0] * (2 - place))


def _strip_patch(value):
    return "{}.{}".format(*_version(value)[0])


def _human_time(seconds):
    """Returns text such as `1d10h17m36s`; below one second microseconds."""
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 <= seconds < math.inf:
        raise ValueError("to_human_time_from_seconds needs seconds from 0, not {!r}.".format(seconds))
    if 0 < seconds < 1:
        return "{}\u03bcs".format(math.floor(seconds * 1000000 + 0.5))
    rest, parts = math.ceil(seconds), []
    for unit, size in UNITS:
        count, rest = divmod(rest, size)
        if count or parts or unit == "s":
            parts.append("{}{}".format(count, unit))
    return "".join(parts)


FILTERS = {
    "basename": os.path.basename,
    "decrypt_kv": unavailable("decrypt_kv", "action_service.get_value(name, decrypt=True)"),
    "dirname": os.path.dirname,
    "from_json_string": json.loads,
    "from_yaml_string": _from_yaml,
    "json_dump": _to_json,
    "json_escape": lambda value: json.dumps(value)[1:-1],
    "json_parse": json.loads,
    "jsonpath_query": _jsonpath,
    "regex_match": _match,
    "regex_replace": _replace,
    "regex_search": _search,
    "regex_substring": _substring,
    "to_complex": json.dumps,
    "to_human_time_from_seconds": _human_time,
    "to_json_string": _to_json,
    "to_yaml_string": _to_yaml,
    "use_none": lambda value: NONE if value is None else value,
    "version_bump_major": partial(_bump, 0),
    "version_bump_minor": partial(_bump, 1),
    "version_bump_patch": partial(_bump, 2),
    "version_compare": _compare,
    "version_equal": partial(_holds, "=="),
    "version_less_than": partial(_holds, "<"),
    "version_match": _version_match,
    "version_more_than": partial(_holds, ">"),
    "version_strip_patch": _strip_patch,
    "yaml_dump": _to_yaml,
    "yaml_parse": _from_yaml,
}
