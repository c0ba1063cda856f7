"""Templates. They need the package `jinja2` in the requirements.txt of the pack."""

import json
import re

__all__ = ["convert_jinja_to_raw_block", "get_jinja_environment", "is_jinja_expression", "render_values"]

START = ("{{", "{%")


def get_jinja_environment(allow_undefined=False, trim_blocks=True, lstrip_blocks=True):
    """Returns an environment of `jinja2` with usual filters of StackStorm.

    :param allow_undefined: a variable that is missing is empty text, not an error
    """
    jinja2 = _jinja2()
    environment = jinja2.Environment(
        undefined=jinja2.Undefined if allow_undefined else jinja2.StrictUndefined,
        trim_blocks=trim_blocks,
        lstrip_blocks=lstrip_blocks,
    )
    environment.filters.update(FILTERS)
    environment.tests["in"] = lambda item, items: item in items
    return environment


def render_values(mapping=None, context=None, allow_undefined=False):
    """Returns the mapping with its templates rendered. Earlier values are variables of later ones."""
    if not context or not mapping:
        return mapping
    variables = dict(context)
    environment = get_jinja_environment(allow_undefined=allow_undefined)
    made = {}
    for name, value in mapping.items():
        is_text = isinstance(value, str)
        text = value if is_text else json.dumps(value)
        rendered = environment.from_string(text).render(variables) if is_jinja_expression(text) else text
        made[name] = rendered if is_text else json.loads(rendered)
        variables[name] = made[name]
    return made


def is_jinja_expression(value):
    return isinstance(value, str) and any(mark in value for mark in START)


def convert_jinja_to_raw_block(value):
    """Returns the value with its templates marked as plain text, also within lists and dictionaries."""
    if isinstance(value, dict):
        return {name: convert_jinja_to_raw_block(item) for name, item in value.items()}
    if isinstance(value, list):
        return [convert_jinja_to_raw_block(item) for item in value]
    return "{% raw %}" + value + "{% endraw %}" if is_jinja_expression(value) else value


def _jinja2():
    try:
        import jinja2
    except ImportError:
        raise ImportError("st2common.util.jinja: add jinja2 to the requirements.txt of the pack.") from None
    return jinja2


def _to_yaml(value, indent=None):
    from st2common.util.pack import import_yaml

    return import_yaml().safe_dump(value, indent=indent, default_flow_style=False)


def _from_yaml(value):
    from st2common.util.pack import import_yaml

    return import_yaml().safe_load(value)


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


FILTERS = {
    "from_json_string": json.loads,
    "from_yaml_string": _from_yaml,
    "json_dump": json.dumps,
    "json_parse": json.loads,
    "json_escape": lambda value: json.dumps(value)[1:-1],
    "regex_match": _match,
    "regex_replace": _replace,
    "regex_search": _search,
    "regex_substring": _substring,
    "to_complex": json.dumps,
    "to_json_string": lambda value, indent=None, sort_keys=False: json.dumps(value, indent=indent, sort_keys=sort_keys),
    "to_yaml_string": _to_yaml,
    "use_none": lambda value: "%*****__%NONE%__*****%" if value is None else value,
    "yaml_dump": _to_yaml,
    "yaml_parse": _from_yaml,
}
