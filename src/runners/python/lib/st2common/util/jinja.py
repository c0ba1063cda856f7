"""Templates. They need the package `jinja2` in the requirements.txt of the pack."""

import json

from svc.jinja_filters import FILTERS

__all__ = ["convert_jinja_to_raw_block", "get_jinja_environment", "is_jinja_expression", "render_values"]

START = ("{{", "{%")


def get_jinja_environment(allow_undefined=False, trim_blocks=True, lstrip_blocks=True):
    """Returns an environment of `jinja2` with the filters of StackStorm.

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
