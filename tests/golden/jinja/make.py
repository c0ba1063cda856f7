"""Makes the golden files beside it: what Python's jinja2 renders for templates that our engine must render alike.

Run with a Python that has jinja2 3.1: `python3 tests/golden/jinja/make.py`. The suite only reads the files.
"""

import json
import os
import re
from pathlib import Path

import jinja2
from jinja2.sandbox import SandboxedEnvironment

FOLDER = Path(__file__).parent


def contract_filters():
    """Filters of contract 02, 2.6 whose meaning is that of a Python function."""

    def flags(ignorecase):
        return re.IGNORECASE if ignorecase else 0

    return {
        "from_json_string": json.loads,
        "to_json_string": lambda value, indent=None, sort_keys=False, separators=(",", ": "): json.dumps(
            value, indent=indent, sort_keys=sort_keys, separators=separators
        ),
        "to_complex": json.dumps,
        "json_escape": lambda value: json.dumps(value)[1:-1],
        "regex_match": lambda value, pattern, ignorecase=False: bool(re.match(pattern, value, flags(ignorecase))),
        "regex_search": lambda value, pattern, ignorecase=False: bool(re.search(pattern, value, flags(ignorecase))),
        "regex_replace": lambda value, pattern, replacement, ignorecase=False: re.sub(
            pattern, replacement, value, flags=flags(ignorecase)
        ),
        "regex_substring": lambda value, pattern, result_index=0, ignorecase=False: re.findall(
            pattern, value, flags(ignorecase)
        )[result_index],
        "basename": os.path.basename,
        "dirname": os.path.dirname,
        "use_none": lambda value: value,
    }


def environment():
    made = SandboxedEnvironment(undefined=jinja2.StrictUndefined)
    made.filters.update(contract_filters())
    made.tests["in"] = lambda value, container: value in container
    return made


CONTEXT = {
    "name": "World",
    "n": 7,
    "pi": 3.14159,
    "neg": -4,
    "yes": True,
    "no": False,
    "nothing": None,
    "empty": "",
    "items_": [3, 1, 2],
    "words": ["banana", "Apple", "cherry", "apple"],
    "none_list": [],
    "user": {"name": "Ada", "age": 36, "tags": ["x", "y"], "address": {"city": "London", "zip": None}},
    "users": [
        {"name": "bob", "age": 30, "city": "Rome", "on": True},
        {"name": "Ann", "age": 25, "city": "Oslo", "on": False},
        {"name": "cid", "age": 30, "city": "Oslo", "on": True},
    ],
    "text": "The quick brown fox jumps over the lazy dog",
    "lines": "one\ntwo\n\nthree",
    "markup": "<p class=\"a\">Tom &amp; Jerry</p><!-- no --> <b>bold</b>",
    "quote": "it's \"here\"",
    "uni": "héllo wörld ñ 日本 🎉",
    "astral": "a🎉b🎈c",
    "tab": "a\tb\\c\nd\u0007\u00a0e",
    "floats": [1.5, 2.25, 0.1],
    "nested": [[1, 2], [3, [4, 5]]],
    "mixed": [1, "1", 1.5, None, True],
    "csv": "a,b,,c",
    "padded": "  pad  ",
    "path": "/var/log/app/service.log",
    "doc": "{\"a\": [1, 2.0, null, true, \"x\"], \"b\": {\"c\": 1e3}}",
    "tree": [{"v": 1, "kids": [{"v": 2, "kids": []}, {"v": 3, "kids": [{"v": 4, "kids": []}]}]}],
    "long_text": "a-very-long-hyphenated-word with some-other words that go on and on until the line must be broken up",
}

EXPRESSIONS = r"""
{{ 1 + 2 }}
{{ 1 + 2 * 3 }}
{{ (1 + 2) * 3 }}
{{ 7 / 2 }}
{{ 4 / 2 }}
{{ 7 // 2 }}
{{ -7 // 2 }}
{{ 7 // -2 }}
{{ 7.5 // 2 }}
{{ -7.5 // 2 }}
{{ 7 % 3 }}
{{ -7 % 3 }}
{{ 7 % -3 }}
{{ 7.5 % 2 }}
{{ -7.5 % 2 }}
{{ 5.0 % -3 }}
{{ 2 ** 10 }}
{{ 2 ** 0.5 }}
{{ 2 ** -1 }}
{{ 2 ** 3 ** 2 }}
{{ -2 ** 2 }}
{{ 2 ** 100 }}
{{ 2 ** 64 // 3 }}
{{ (2 ** 64) % 1000 }}
{{ -(2 ** 70) }}
{{ 12345678901234567890 }}
{{ 12345678901234567890 + 1 }}
{{ 9007199254740991 + 2 }}
{{ 99999999999 * 99999999999 }}
{{ 1.0 }}
{{ 1e3 }}
{{ 1.5e-7 }}
{{ 1e16 }}
{{ 1e15 }}
{{ 123456789012345680.0 }}
{{ 0.1 + 0.2 }}
{{ 1_000_000 }}
{{ 0x1f }} {{ 0b101 }} {{ 0o17 }}
{{ 1 / 3 }}
{{ 1.0 * 3 }}
{{ 3 - 3.0 }}
{{ -0.0 }}
{{ +5 }} {{ -5 }} {{ - -5 }}
{{ true + true }}
{{ true * 3.5 }}
{{ 'a' + 'b' }}
{{ 'ab' * 3 }}
{{ 3 * 'ab' }}
{{ 'ab' * 0 }}|
{{ [1] + [2, 3] }}
{{ [1, 2] * 2 }}
{{ (1, 2) + (3,) }}
{{ 'a' ~ 1 ~ none ~ 1.0 ~ true }}
{{ 1 ~ 2 }}
{{ 1 + 2 ~ 3 }}
{{ 1 == 1.0 }} {{ 1 == '1' }} {{ true == 1 }} {{ none == false }}
{{ 1 != 2 }} {{ 'a' < 'b' }} {{ 'B' < 'a' }} {{ 2 >= 2 }} {{ 2 <= 1 }}
{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 3 > 2 >= 2 == 2 }}
{{ [1, 2] == [1, 2] }} {{ [1, 2] == (1, 2) }} {{ [1, 2] < [1, 3] }} {{ (1,) < (1, 0) }}
{{ {'a': 1} == {'a': 1.0} }} {{ {'a': 1, 'b': 2} == {'b': 2, 'a': 1} }}
{{ 1 in [1, 2] }} {{ 3 in [1, 2] }} {{ 3 not in [1, 2] }}
{{ 'a' in 'cat' }} {{ 'dog' in 'cat' }} {{ 'name' in user }} {{ 'Ada' in user }}
{{ 1.0 in [1] }} {{ true in [1] }}
{{ not true }} {{ not '' }} {{ not [] }} {{ not {} }} {{ not 0.0 }} {{ not none }}
{{ true and false }} {{ true or false }} {{ '' or 'x' }} {{ 'a' and 'b' }} {{ 0 and 1 }} {{ none or 0 or [] }}
{{ not true or true }} {{ not (true or true) }} {{ true or false and false }}
{{ 'yes' if n > 5 else 'no' }}
{{ 'yes' if n > 50 else 'no' }}
{{ 'a' if false else 'b' if false else 'c' }}
{{ ('a' if true) }}
{{ [1, 2, 3][0] }} {{ [1, 2, 3][-1] }}
{{ [1, 2, 3][1:] }} {{ [1, 2, 3][:-1] }} {{ [1, 2, 3, 4][::2] }} {{ [1, 2, 3][::-1] }}
{{ 'hello'[1:3] }} {{ 'hello'[::-1] }} {{ 'hello'[-3:] }} {{ 'hello'[10:] }}| {{ 'hello'[3:1] }}|
{{ (1, 2, 3)[1:] }}
{{ [1,2,3,4,5,6][4:1:-2] }} {{ 'abcdef'[-100:2] }} {{ [1,2,3][5:0:-1] }}
{{ user.name }} {{ user['name'] }} {{ user.address.city }} {{ user['address']['city'] }}
{{ user.tags[1] }} {{ user.tags.1 }} {{ nested.1.1.0 }}
{{ users[0].name }} {{ users[-1]['name'] }}
{{ {'a': 1}['a'] }} {{ {'a': 1}.a }} {{ {1: 'x'}[1] }} {{ {1: 'x', true: 'y'} }}
{{ {'a': {'b': {'c': 1}}}.a.b.c }}
{{ 'abc'[1] }} {{ 'abc'[-1] }}
{{ [1, 2, 3,] }} {{ {'a': 1,} }} {{ (1,) }} {{ () }} {{ [] }} {{ {} }}
{{ 1, 2 }}
{{ 'a' 'b' "c" }}
{{ "a\nb" }} {{ 'a\'b' }} {{ "tab\there" }} {{ 'A\u0042\x43' }} {{ '\d' }}
{{ name|upper }} {{ name | lower | title }}
{{ -3|abs }} {{ (-3)|abs }} {{ 2 * 3|string }}
{{ n is odd }} {{ n is not even }} {{ not n is odd }} {{ n is divisibleby 7 }} {{ n is divisibleby(2) }}
{{ range(5)|list }} {{ range(2, 5)|list }} {{ range(10, 0, -3)|list }} {{ range(0) }} {{ range(3) }} {{ range(0, 6, 2) }}
{{ dict(a=1, b='x') }} {{ dict({'a': 1}, b=2) }} {{ dict([('a', 1), ('b', 2)]) }}
{{ [range(3)[1], range(3)[-1], range(10)[2:5]|list] }}
{{ 3 in range(5) }} {{ 7 in range(5) }}
{{ "%s is %d" % ('x', 5) }} {{ "%s" % 'y' }} {{ "%(a)s-%(b)s" % {'a': 1, 'b': 2} }}
{{ "%5d|%-5d|%05d|%+d|% d" % (42, 42, 42, 42, 42) }}
{{ "%.2f|%8.3f|%e|%g|%g|%G" % (3.14159, 2.5, 12345.678, 0.00001, 1e10, 1e-10) }}
{{ "%x|%X|%#x|%o|%c|%r|%%" % (255, 255, 255, 8, 'z', 'q') }}
{{ "%.3s|%10s|%-10s|" % ('abcdef', 'r', 'l') }}
{{ "%.0f %.0f %.0f %.1f" % (0.5, 1.5, 2.5, 0.25) }}
{{ (n)(1) if false else 'ok' }}
{{ {'a': [1, {'b': (2, 3)}]} }}
{{ (1, (2, 3)) == (1, (2, 3)) }} {{ {(1, 2): 'x'}[(1, 2)] }}
{{ 'x' if user.address.zip is none else 'y' }}
{{ [n, name, nothing, yes] }}
{{ 10 // 3 * 3 + 10 % 3 == 10 }}
{{ -0.1 // -7 }} {{ -1 // -3.25 }} {{ -0.1 // 7 }} {{ (-0.0)|abs }} {{ 0.0 // -2 }} {{ -0.0 // 2 }}
{{ 7 // 2.0 }} {{ 1e308 * 10 }} {{ -1e308 * 10 }}
{{ 5 if 1 else 6 }} {{ (5 if 0 else 6) + 1 }}
{{ [1, 2, 3] | map('string') | join('-') ~ '!' }}
{{ (1 if yes else 2) if no else 3 }}
{{ 1e16 // 3 }} {{ -1e16 // 3 }} {{ 7.5 // 0.5 }} {{ -7.5 // 2 }} {{ 1e16 // 3.0 }}
{{ 7 / 9007199254740993 }} {{ 2 ** 70 / 3 }} {{ -(2 ** 2000) / 2 ** 1999 }} {{ 2 ** 2000 // 2 ** 1990 }} {{ 1 / 2 ** 5000 }}
{{ (2 ** 64 + 1) / 2 ** 3 }} {{ 3 ** 200 / 7 ** 50 }} {{ -9007199254740993 / 9007199254740993 }}
{{ 2 ** 5000 / 3 }}
{{ '{:08,}|{:08,}|{:09,.2f}|{:0=+8,}|{:010_x}|{:<08,}|{:012,}'.format(1, -12.5, 1234.5, 7, 255, 3, 123456789) }}
{{ '{:.2}|{:.3}|{:.1}|{:.4}|{:.5}|{:.0}'.format(73.76, 73.76, 0.0, 2.0, 1234.0, 7.5) }} {{ '{:014,.2e}'.format(1234.5) }}
{% for x in ['nan', '-inf'] %}{{ '{:010,}|{:+012_}|{:,}'.format(x|float, x|float, x|float) }}{% endfor %} {{ 1 / 10 ** 310 }} {{ -(10 ** 30) / 10 ** 345 }} {{ 1 / 10 ** 400 }}
{{ '%a|%a' % ('é🎉', 'a') }} {{ '{!a:>9}'.format('é') }}
{{ [none, none]|sort }} {{ [{'a': 1}, {'a': 1}]|sort }} {{ [{'x': none}, {'x': none}]|sort(attribute='x') }}
{{ [none, 1]|sort }}
"""

PRINTING = r"""
{{ true }} {{ false }} {{ none }} {{ True }} {{ False }} {{ None }}
x{{ nothing }}y
{{ [true, none, 1, 1.0, 'a'] }}
{{ {'k': 'v', 'n': none, 'l': [1, 2.5]} }}
{{ user }}
{{ users }}
{{ floats }}
{{ mixed }}
{{ ["it's", 'say "hi"', quote] }}
{{ [tab] }}
{{ tab }}
{{ [uni, astral] }}
{{ uni }}
{{ ['\u200b', '\ufeff', '\xad', '\u2028'] }}
{{ [1e100, 1e-100, 123456789.123, 1e22, 5e-324] }}
{{ [0.1, 100.0, 1234567.0, 0.0001, 0.00001] }}
{{ 1e22 }} {{ 1e21 }} {{ 123456789012345678.5 }}
{{ (1,) }} {{ (1, 'a') }} {{ ((1, 2), [3]) }}
{{ {'a': 1}.items() }} {{ {'a': 1}.keys() }} {{ {'a': 1}.values() }}
{{ {1: 'a', none: 'b', (1, 2): 'c', 1.5: 'd'} }}
{{ ['\\', '\n', '\r', '\t', '\0'] }}
{{ nested }}
{{ 'a'|list }} {{ user|list }}
{{ [[]] }} {{ [{}] }} {{ {'a': ()} }}
a{{ 1 }}b{{ 'c' }}d
{{ '' }}
{{ "{{ not a template }}" }}
{{ '{% if %}' }}
{{ 2 ** 200 }}
{{ [-0.0, 0.0, -1] }}
"""

FILTERS = r"""
{{ neg|abs }} {{ -2.5|abs }}
{{ items_|sort }} {{ items_|sort(reverse=true) }} {{ items_|sort(true) }}
{{ words|sort }} {{ words|sort(case_sensitive=true) }}
{{ users|sort(attribute='age')|map(attribute='name')|list }}
{{ users|sort(attribute='age,name')|map(attribute='name')|list }}
{{ users|sort(attribute='name', reverse=true)|map(attribute='name')|join(',') }}
{{ user|dictsort }}
{{ {'b': 1, 'A': 2}|dictsort }} {{ {'b': 1, 'A': 2}|dictsort(true) }} {{ {'b': 1, 'A': 2}|dictsort(false, 'value') }} {{ {'b': 1, 'A': 2}|dictsort(reverse=true) }}
{{ words|first }} {{ words|last }} {{ 'abc'|first }} {{ 'abc'|last }}
{{ words|length }} {{ 'abc'|length }} {{ user|length }} {{ words|count }} {{ uni|length }}
{{ words|join }} {{ words|join(', ') }} {{ [1, none, 2.0]|join('|') }} {{ users|join(', ', attribute='name') }} {{ 'abc'|join('-') }}
{{ words|map('upper')|list }} {{ users|map(attribute='age')|list }} {{ users|map(attribute='nope', default='-')|list }}
{{ users|map(attribute='name')|map('capitalize')|join(' ') }}
{{ [[1, 2], [3, 4]]|map(attribute=1)|list }} {{ [{'a': {'b': 1}}]|map(attribute='a.b')|list }} {{ [{'a': [5, 6]}]|map(attribute='a.1')|list }}
{{ [1, 2, 3, 4]|select('odd')|list }} {{ [1, 2, 3, 4]|reject('odd')|list }} {{ [0, 1, '', 'a', none]|select|list }} {{ [0, 1]|reject|list }}
{{ [1, 5, 10]|select('gt', 4)|list }} {{ [1, 5, 10]|select('>', 4)|list }} {{ ['a', 'b']|select('in', 'ac')|list }}
{{ users|selectattr('on')|map(attribute='name')|list }} {{ users|rejectattr('on')|map(attribute='name')|list }}
{{ users|selectattr('age', 'equalto', 30)|map(attribute='name')|list }} {{ users|selectattr('city', '==', 'Oslo')|list|length }}
{{ users|rejectattr('age', 'lt', 30)|map(attribute='name')|list }}
{{ [1, 2, 3]|sum }} {{ users|sum(attribute='age') }} {{ [1, 2]|sum(start=10) }} {{ []|sum }} {{ [0.1, 0.2]|sum }}
{{ items_|min }} {{ items_|max }} {{ words|min }} {{ words|max }} {{ words|max(case_sensitive=true) }} {{ users|min(attribute='age') }}
{{ [1, 2, 1, 3, 2]|unique|list }} {{ words|unique|list }} {{ words|unique(true)|list }} {{ users|unique(attribute='city')|map(attribute='name')|list }}
{% for city, group in users|groupby('city') %}{{ city }}:{{ group|map(attribute='name')|join('+') }};{% endfor %}
{% for g in users|groupby('age') %}{{ g.grouper }}={{ g.list|length }};{% endfor %}
{{ users|groupby('city')|map('first')|list }}
{{ [{'a': 'x'}, {}]|groupby('a', default='z')|map(attribute='grouper')|list }}
{{ [1,2,3,4,5]|batch(2)|list }} {{ [1,2,3,4,5]|batch(2, 'x')|list }}
{{ [1,2,3,4,5]|slice(2)|list }} {{ [1,2,3,4,5]|slice(3, 'x')|list }}
{{ items_|reverse|list }} {{ 'abc'|reverse }}
{{ user|items|list }}
{{ name|upper }} {{ name|lower }} {{ 'hELLO wORLD'|capitalize }} {{ 'hello world'|title }}
{{ "foo-bar (baz) it's {x} [y] <z>"|title }} {{ 'HELLO'|title }}
{{ padded|trim }}| {{ 'xxaxx'|trim('x') }}
{{ 'aXbXc'|replace('X', '-') }} {{ 'aXbXc'|replace('X', '-', 1) }} {{ 'abc'|replace('', '.') }} {{ 123|replace(2, 'x') }}
{{ 'x'|center(9) }}| {{ 'xy'|center(7) }}| {{ 'ab'|center(5) }}|
{{ text|truncate(20) }} {{ text|truncate(20, true) }} {{ text|truncate(20, false, '…') }} {{ text|truncate(40, leeway=0) }} {{ 'short'|truncate(3) }} {{ text|truncate(10, true, '', 0) }}
{{ lines|indent }} {{ lines|indent(2, true) }} {{ lines|indent(2, blank=true) }} {{ lines|indent('> ', true, true) }} {{ ''|indent(2, true) }}|
{{ text|wordwrap(15) }}
{{ text|wordwrap(10, wrapstring='|') }}
{{ long_text|wordwrap(12) }}
{{ long_text|wordwrap(12, break_on_hyphens=false) }}
{{ long_text|wordwrap(5, false) }}
{{ 'aaaaaaaaaaaaaaaaaaaa bb'|wordwrap(6) }}
{{ lines|wordwrap(3) }}
{{ 'x--y a--b--c well-known e-mail 2-3 --opt foo--'|wordwrap(4) }}
{{ text|wordcount }} {{ "it's a b-c"|wordcount }}
{{ markup|striptags }} {{ '<a <b> c> d'|striptags }}
{{ markup|escape }} {{ '<'|e }} {{ "'\""|e }} {{ '<x>'|safe }} {{ '&'|forceescape }}
{{ {'a': 1, 'b': none, 'c': '<"'}|xmlattr }}|{{ {}|xmlattr }}|{{ {'a': none}|xmlattr }}|{{ {'a': true, 'b': [1]}|xmlattr(false) }}|{{ {'<a': 1}|xmlattr(autospace=false) }}
{{ {'a b': 1}|xmlattr }}
{{ {'a>': 1}|xmlattr }}
{{ {'a=': 1}|xmlattr }}
{{ {1: 2}|xmlattr }}
{{ 'abc'|xmlattr }}
{{ 'a b&c/d?é'|urlencode }} {{ {'a': 1, 'b c': 'd/e&'}|urlencode }} {{ [('x', 'y z')]|urlencode }}
{{ '3'|int }} {{ '3.7'|int }} {{ 'x'|int }} {{ 'x'|int(9) }} {{ '0x1f'|int(base=16) }} {{ 'ff'|int(0, 16) }} {{ 3.9|int }} {{ -3.9|int }} {{ true|int }} {{ none|int(5) }} {{ ' 42 '|int }} {{ '1_000'|int }} {{ '0b11'|int(0, 0) }}
{{ '3.5'|float }} {{ 'x'|float }} {{ 'x'|float(1.5) }} {{ 3|float }} {{ '1e3'|float }} {{ 'inf'|float }} {{ none|float }} {{ ' 2.5 '|float }} {{ '.5'|float }}
{{ 42.55|round }} {{ 42.55|round(1) }} {{ 42.55|round(1, 'floor') }} {{ 42.55|round(1, 'ceil') }} {{ 42|round }} {{ 2.5|round }} {{ 3.5|round }} {{ 1234|round(-2) }} {{ 1250|round(-2) }} {{ 2.675|round(2) }} {{ 42.7|round|int }} {{ -2.5|round }} {{ 0.5|round(0, 'ceil') }}
{{ 123|string }} {{ 1.0|string }} {{ none|string }} {{ [1]|string }}
{{ 'abc'|list }} {{ (1, 2)|list }} {{ {'a': 1}|list }}
{{ missing|default('d') }} {{ missing|default }}| {{ ''|default('d') }}| {{ ''|default('d', true) }} {{ none|default('d') }} {{ none|d('d', true) }} {{ 0|default(5, boolean=true) }} {{ user.nope|default('d') }}
{{ '%s-%s'|format('a', 2) }} {{ '%(x)s'|format(x=5) }} {{ '%.2f'|format(2.345) }} {{ 'plain'|format }}
{{ 1|filesizeformat }} {{ 500|filesizeformat }} {{ 1500|filesizeformat }} {{ 1234567|filesizeformat }} {{ 1234567|filesizeformat(true) }} {{ 1e15|filesizeformat }} {{ 0|filesizeformat }} {{ '2048'|filesizeformat(true) }}
{{ user|tojson }} {{ "<a href='x'>&"|tojson }} {{ [1, 1.0, none, true, uni]|tojson }} {{ {'b': 1, 'a': [1, 2]}|tojson(2) }} {{ {}|tojson(2) }} {{ []|tojson }}
{{ users|pprint }}
{{ {'b': 1, 'a': [1, 2, 3]}|pprint }} {{ 'x'|pprint }} {{ nested|pprint }}
{{ 'abc'|attr('upper') is callable }}
{{ [3, 1]|sort|first }} {{ words|sort|join(',')|upper }}
{% filter upper %}a{{ name }}b{% endfilter %} {% filter replace('a', 'x')|title %}banana{% endfilter %}
{{ ['a', 'b']|map('replace', 'a', 'z')|list }} {{ [1.234, 5.678]|map('round', 1)|list }} {{ ['1', '2']|map('int')|sum }}
{{ [[2, 'b'], [1, 'a']]|sort }} {{ [(2, 'b'), (1, 'a')]|sort(attribute=0) }}
{{ [none, 1]|map('default', 'x', true)|list }}
{{ 'a,b'|upper|replace(',', ';') }}
{{ [1, [2, 3]]|last|first }}
{{ 'ß'|upper }} {{ 'É'|lower }} {{ 'ñandú'|capitalize }} {{ 'élan vital'|title }}
"""

TESTS = r"""
{{ missing is defined }} {{ name is defined }} {{ user.nope is defined }} {{ user.name is defined }} {{ missing is undefined }} {{ missing is not defined }}
{{ none is none }} {{ 0 is none }} {{ nothing is none }}
{{ 1 is number }} {{ 1.0 is number }} {{ '1' is number }} {{ true is number }} {{ 1 is integer }} {{ 1.0 is integer }} {{ true is integer }} {{ 1.0 is float }} {{ 1 is float }}
{{ 'a' is string }} {{ 1 is string }} {{ true is boolean }} {{ 1 is boolean }} {{ true is true }} {{ 1 is true }} {{ false is false }} {{ 0 is false }}
{{ [] is sequence }} {{ 'a' is sequence }} {{ {} is sequence }} {{ 1 is sequence }} {{ (1,) is sequence }}
{{ [] is iterable }} {{ 'a' is iterable }} {{ 1 is iterable }} {{ {} is iterable }}
{{ {} is mapping }} {{ [] is mapping }} {{ user is mapping }}
{{ 'a' is lower }} {{ 'A' is lower }} {{ 'A' is upper }} {{ 'Ab' is upper }} {{ '1' is lower }} {{ 'A1' is upper }}
{{ 3 is odd }} {{ 4 is odd }} {{ 4 is even }} {{ -3 is odd }} {{ 9 is divisibleby 3 }} {{ 9 is divisibleby(2) }}
{{ 1 is eq 1 }} {{ 1 is equalto 2 }} {{ 1 is ne 2 }} {{ 1 is lt 2 }} {{ 1 is le 1 }} {{ 2 is gt 1 }} {{ 2 is ge 3 }} {{ 1 is lessthan 2 }} {{ 3 is greaterthan 2 }}
{{ 1 is sameas 1 }} {{ true is sameas true }} {{ none is sameas none }}
{{ 1 is in [1, 2] }} {{ 3 is in([1, 2]) }} {{ 'a' is in 'abc' }} {{ 5 is not in [1] }}
{{ 'upper' is filter }} {{ 'nope' is filter }} {{ 'odd' is test }} {{ 'nope' is test }}
{{ range is callable }} {{ 1 is callable }} {{ '' is escaped }}
{{ 'x' if missing is defined else 'y' }} {{ n is odd and n > 5 }} {{ (n is odd) == true }}
{{ missing is none }} {{ missing is string }} {{ missing is mapping }} {{ missing is number }}
{{ [1, 2, 3]|select('divisibleby', 3)|list }} {{ [none, 1]|reject('none')|list }} {{ ['a', 1]|select('string')|list }}
{% if user.name is string and user.age is number %}ok{% endif %}
"""

STATEMENTS = [
    "{% if n > 5 %}big{% endif %}",
    "{% if n > 50 %}big{% elif n > 6 %}mid{% else %}small{% endif %}",
    "{% if n > 50 %}big{% elif n > 60 %}mid{% else %}small{% endif %}",
    "{% if none_list %}a{% else %}b{% endif %}",
    "{% if not yes %}a{% elif no %}b{% endif %}|",
    "{% if yes and (no or n == 7) %}x{% endif %}",
    "{% for i in items_ %}{{ i }},{% endfor %}",
    "{% for i in none_list %}{{ i }}{% else %}none{% endfor %}",
    "{% for i in items_ %}{{ loop.index }}/{{ loop.index0 }}/{{ loop.revindex }}/{{ loop.revindex0 }}/{{ loop.first }}/{{ loop.last }}/{{ loop.length }};{% endfor %}",
    "{% for i in items_ %}{{ loop.cycle('a', 'b') }}{% endfor %}",
    "{% for i in [1, 1, 2, 2, 1] %}{% if loop.changed(i) %}{{ i }}{% endif %}{% endfor %}",
    "{% for i in items_ %}{{ loop.previtem|default('-') }}<{{ i }}>{{ loop.nextitem|default('-') }} {% endfor %}",
    "{% for i in range(10) if i is odd %}{{ loop.index }}:{{ i }} {% endfor %}",
    "{% for i in range(3) if i > 5 %}{{ i }}{% else %}empty{% endfor %}",
    "{% for k, v in user.items() %}{{ k }}={{ v }};{% endfor %}",
    "{% for k in user %}{{ k }} {% endfor %}",
    "{% for k, v in user|dictsort %}{{ k }} {% endfor %}",
    "{% for a, (b, c) in [(1, (2, 3)), (4, (5, 6))] %}{{ a }}{{ b }}{{ c }} {% endfor %}",
    "{% for c in 'abc' %}[{{ c }}]{% endfor %}",
    "{% for c in astral %}[{{ c }}]{% endfor %}",
    "{% for a in [1, 2] %}{% for b in ['x', 'y'] %}{{ a }}{{ b }}{{ loop.index }} {% endfor %}{{ loop.index }};{% endfor %}",
    "{% for i in items_ %}{% set x = i %}{% endfor %}{{ x is defined }}",
    "{% set x = 1 %}{% for i in items_ %}{{ x }}{% set x = i %}{{ x }} {% endfor %}{{ x }}",
    "{% set x = 1 %}{% if yes %}{% set x = 2 %}{% endif %}{{ x }}",
    "{% set x, y = 1, 2 %}{{ x }}{{ y }}",
    "{% set x = [1, 2] %}{{ x }}",
    "{% set x = 1, 2 %}{{ x }}",
    "{% set x %}a{{ name }}b{% endset %}[{{ x }}]",
    "{% set x | upper %}a{{ name }}b{% endset %}{{ x }}",
    "{% set ns = namespace(found=false) %}{% for i in items_ %}{% if i == 1 %}{% set ns.found = true %}{% endif %}{% endfor %}{{ ns.found }}",
    "{% set ns = namespace({'a': 1}, b=2) %}{{ ns.a + ns.b }}{% set ns.c = 3 %}{{ ns.c }}",
    "{% with %}{% set q = 1 %}{{ q }}{% endwith %}{{ q is defined }}",
    "{% with a = 1, b = 2 %}{{ a + b }}{% endwith %}",
    "{% with a = n %}{{ a }}{% with a = 2 %}{{ a }}{% endwith %}{{ a }}{% endwith %}",
    "{% with a = 1 %}{% with b = a + 1 %}{{ b }}{% endwith %}{% endwith %}",
    "{% macro hi(who, mark='!') %}hi {{ who }}{{ mark }}{% endmacro %}{{ hi('a') }} {{ hi('b', '?') }} {{ hi(mark='.', who='c') }}",
    "{% macro m(a) %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, 3, x=4) }}",
    "{% macro m(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}{{ m(1, 2) }}",
    "{% macro m(a) %}{{ a is defined }}{% endmacro %}{{ m() }}",
    "{% macro fact(k) %}{% if k <= 1 %}1{% else %}{{ k * (fact(k - 1)|int) }}{% endif %}{% endmacro %}{{ fact(5) }}",
    "{% macro m() %}{{ y }}{% endmacro %}{% set y = 3 %}{{ m() }}",
    "{% macro m() %}{{ n }}{% set n = 1 %}{% endmacro %}{{ n }}{{ n }}",
    "{% macro box() %}<{{ caller() }}>{% endmacro %}{% call box() %}in {{ name }}{% endcall %}",
    "{% macro each(xs) %}{% for x in xs %}{{ caller(x) }}{% endfor %}{% endmacro %}{% call(v) each([1, 2]) %}[{{ v }}]{% endcall %}",
    "{% macro m(a, b) %}{% endmacro %}{{ m.name }} {{ m.arguments }}",
    "{% macro m(*a) %}{% endmacro %}",
    "{% for item in tree recursive %}{{ item.v }}{% if item.kids %}({{ loop(item.kids) }}){% endif %}{{ loop.depth }}{% endfor %}",
    "{% raw %}{{ x }} {% if %}{% endraw %}",
    "a{% raw -%}  {{ x }}  {%- endraw %}b",
    "{# comment #}a{# {{ x }} {% if %} #}b",
    "a{#- c -#} b",
    "{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}{% set _ = c.reset() %}{{ c.next() }}",
    "{% set j = joiner('|') %}{% for i in [1, 2, 3] %}{{ j() }}{{ i }}{% endfor %}",
    "{% set f = 'abc'.upper %}{{ f() }}",
    "{% for i in range(3) %}{% for j in range(3) if j < i %}{{ i }}{{ j }} {% endfor %}{% endfor %}",
    "{% if 1 %}{% if 0 %}a{% else %}{% if 1 %}b{% endif %}{% endif %}{% endif %}",
    "{% for u in users|sort(attribute='name') %}{{ loop.index }}. {{ u.name }} ({{ u.age }})\n{% endfor %}",
    "{% set total = namespace(n=0) %}{% for u in users %}{% set total.n = total.n + u.age %}{% endfor %}{{ total.n / users|length }}",
    "{% for a in [1, 2, 3] %}{{ a }}{{ ', ' if not loop.last else '' }}{% endfor %}",
    "{% for i in items_ %}{% if loop.first %}F{% endif %}{{ i }}{% if loop.last %}L{% endif %}{% endfor %}",
    "{% set a = b = 1 %}",
    "{%if n%}x{%endif%}",
    "{%- if n -%} x {%- endif -%}",
    "{% for x in [] %}{% endfor %}{{ loop is defined }}",
    "{% set d = {'a': 1} %}{{ d.a }}{% set d = dict(d, b=2) %}{{ d }}",
    "{% set outer = 1 %}{% macro m() %}{{ outer }}{% endmacro %}{% for outer in [5] %}{{ m() }}{{ outer }}{% endfor %}",
    "{% if n == 7 %}\n  yes\n{% endif %}\n",
    "{{ loop.index if loop is defined else 'no loop' }}",
]

WHITESPACE = [
    "a {{- 1 -}} b",
    "a {{- 1 }} b",
    "a {{ 1 -}} b",
    "a\n\n{%- if yes %}\n b\n{%- endif %}\nc",
    "a\n{% if yes -%}\n b \n{%- endif -%}\n c",
    "{% for i in [1, 2] %}\n{{ i }}\n{% endfor %}",
    "{% for i in [1, 2] -%}\n{{ i }}\n{%- endfor %}",
    "{%- for i in [1, 2] %}  {{ i }}  {%- endfor -%}  x",
    "  {{ 1 }}  ",
    "{{ 1 }}\n",
    "{{ 1 }}\n\n",
    "a\n",
    "\n{{ 1 }}",
    "a\r\n{{ 1 }}\r\nb\r\n",
    "a\r{{ 1 }}",
    "x {#- c #} y {# d -#} z",
    "x {%+ if yes %} y {% endif +%} z",
    "a\t{%- set x = 1 -%}\t b",
    "{{ 'a' }}\n{{ 'b' }}",
    "{{    1    }}{%    if    yes    %}x{%    endif    %}",
    "{{\n1\n+\n2\n}}",
    "{{ [1,\n 2] }}",
    "a {%- raw %} x {% endraw -%} b",
    "a {% raw %} x {%- endraw %} b",
    "{{ 'line1\nline2' }}",
    "{{- 'x' -}}",
    "  {%- if yes -%}  {%- endif -%}  |",
    "\u00a0{{- 1 -}}\u00a0|",
    "{ { 1 } } {{ '}}' }} { % x % }",
    "100% {x} {{ 1 }} %} #} }}",
    "$ {{ name }} ${name} {name}",
]

UNDEFINED = r"""
{{ missing }}
x{{ missing }}
{{ missing.attr }}
{{ missing['k'] }}
{{ missing() }}
{{ user.nope }}
{{ user['nope'] }}
{{ user.nope.deeper }}
{{ user.nope.deeper|default('x') }}
{{ missing.attr|default('x') }}
{{ items_[10] }}
{{ items_[10]|default('x') }}
{{ nothing.attr }}
{{ nothing.attr|default('x') }}
{{ missing + 1 }}
{{ 1 + missing }}
{{ missing ~ 'a' }}
{{ missing == 1 }}
{{ missing != 1 }}
{{ missing < 1 }}
{{ not missing }}
{{ missing and 1 }}
{{ missing or 1 }}
{{ 1 or missing }}
{{ 0 and missing }}
{{ 'x' in missing }}
{{ missing in [] }}
{{ missing|upper }}
{{ missing|length }}
{{ missing|list }}
{{ missing|int }}
{{ missing|join }}
{{ missing|default(missing2) }}
{{ missing|default(missing2)|default('z') }}
{% if missing %}a{% endif %}
{% if missing is defined and missing %}a{% else %}b{% endif %}
{% for i in missing %}{{ i }}{% endfor %}
{% set x = missing %}ok
{% set x = missing %}{{ x }}
{% set x = missing %}{{ x|default('d') }}
{{ (1 if false) }}x
{{ 'a' if false }}
{% for i in [1, 2] %}{{ i }}{{ ', ' if not loop.last }}{% endfor %}
{{ (1 if false)|upper }}| {{ (1 if false)|list }} {{ (1 if false)|length }} {{ (1 if false) is defined }} {{ (1 if false)|default('d') }}
{{ not (1 if false) }} {{ 'x' ~ (1 if false) }} {{ (1 if false) == 1 }}
{{ (1 if false) + 1 }}
{{ (1 if false).x }}
{{ [1, 2]|first }} {{ []|first }}
{{ []|first|default('none') }}
{{ []|max|default('none') }}
{{ users|map(attribute='nope')|list|length }}
{{ users|map(attribute='nope')|join }}
{{ nope_filter is defined }}
{{ users[0].nope is defined }}
{{ users[9] is defined }}
{{ {'a': 1}.b }}
{{ 'abc'.nope }}
{{ 'abc'[7] }}
{{ 5 .x }}
{{ user.name.first }}
{{ -missing }}
{{ missing[1:] }}
{{ {'a': missing}|length }}
{{ missing is odd }}
{{ missing is iterable }}
{{ missing is eq 1 }}
{{ missing is in [1] }}
{{ dict(a=missing).a|default('q') }}
"""

ERRORS = r"""
{{ 1 / 0 }}
{{ 1 // 0 }}
{{ 1 % 0 }}
{{ 1.0 / 0 }}
{{ 'a' + 1 }}
{{ 1 + 'a' }}
{{ [1] + (2,) }}
{{ 'a' - 'b' }}
{{ 'a' * 1.5 }}
{{ 1 < 'a' }}
{{ [1, 'a']|sort }}
{{ none < 1 }}
{{ 1 in 5 }}
{{ 1 in 'abc' }}
{{ 5[0:1] }}
{{ name() }}
{{ 5|length }}
{{ none|list }}
{{ 5|join }}
{{ {[1]: 2} }}
{{ -'a' }}
{{ 'abc'|nope }}
{{ 'abc' is nope }}
{{ 'abc'.join([1]) }}
{{ '%d' % 'x' }}
{{ '%s %s' % ('x',) }}
{{ '%s' % (1, 2) }}
{{ 'abc'.split('') }}
{{ 'abc'.index('z') }}
{{ range(1, 2, 0) }}
{{ '{} {}'.format(1) }}
{{ '{x}'.format(1) }}
{{ 'abc'|upper(1) }}
{{ 'a'.upper(1) }}
{{ 'abc'|round }}
{{ [1]|sum(attribute='x') }}
{{ 'x'|truncate(1, end='....') }}
{% for a, b in [1, 2] %}{% endfor %}
{% for a, b in [(1, 2, 3)] %}{% endfor %}
{% for i in 5 %}{% endfor %}
{% set name.x = 1 %}
{% macro m() %}{% endmacro %}{{ m(1) }}
{% macro m() %}{% endmacro %}{{ m(x=1) }}
{{ 2.0 ** 100000 }}
{{ 'abc'[::0] }}
{{ [1]|map('nope')|list }}
{{ {'a': 1}|dictsort(by='x') }}
{{ }}
{{ 1 + }}
{{ (1 }}
{{ [1 }}
{{ 1) }}
{{ 'abc }}
{{ a b }}
{{ if }}
{{ 1 if }}
{{ x.1.y. }}
{{ x|  }}
{{ x is }}
{{ f(a=1, 2) }}
{{ f(a=1, a=2) }}
{{ 'a' is odd is even }}
{{ {1} }}
{{ {1: } }}
{{ @ }}
{{ a = 1 }}
{{ a; b }}
{{ 0123 }}
{{
{% if %}x{% endif %}
{% if x %}
{% endif %}
{% if x %}{% endfor %}
{% for %}{% endfor %}
{% for x %}{% endfor %}
{% for x in %}{% endfor %}
{% for 1 in x %}{% endfor %}
{% nope %}
{% else %}
{% set %}
{% set 1 = 2 %}
{% set true = 2 %}
{% set x = %}
{% macro %}{% endmacro %}
{% macro m(a=1, b) %}{% endmacro %}
{% call 5 %}{% endcall %}
{% filter %}{% endfilter %}
{% raw %}x
{# open
{% if x
{% elif x %}
{{ x }
{% with a %}{% endwith %}
"""

METHODS = r"""
{{ 'Hello'.upper() }} {{ 'Hello'.lower() }} {{ 'hello world'.title() }} {{ "they're x2y".title() }} {{ 'hELLO'.capitalize() }} {{ 'aBc'.swapcase() }}
{{ '  x '.strip() }}| {{ '  x '.lstrip() }}| {{ '  x '.rstrip() }}| {{ 'xxaxx'.strip('x') }} {{ 'abcba'.lstrip('ab') }} {{ 'abcba'.rstrip('ab') }}
{{ 'a b  c'.split() }} {{ 'a,b,c'.split(',') }} {{ 'a,b,c'.split(',', 1) }} {{ ''.split() }} {{ ''.split(',') }} {{ ' a b '.split(' ') }} {{ 'a b c'.split(none, 1) }} {{ 'a b  c '.split(maxsplit=1) }}
{{ 'a,b,c'.rsplit(',', 1) }} {{ 'a b c'.rsplit(none, 1) }} {{ 'a--b--c'.rsplit('--') }} {{ ' a  b c '.rsplit(maxsplit=1) }}
{{ csv.split(',') }} {{ csv.split(',')|select|list }}
{{ '-'.join(['a', 'b']) }} {{ ''.join([]) }}| {{ ', '.join(user) }}
{{ 'aaa'.replace('a', 'b') }} {{ 'aaa'.replace('a', 'b', 2) }} {{ 'abc'.replace('', '-') }} {{ 'abc'.replace('', '-', 2) }} {{ 'abc'.replace('x', 'y') }}
{{ 'abc'.startswith('ab') }} {{ 'abc'.startswith(('x', 'a')) }} {{ 'abc'.startswith('b', 1) }} {{ 'abc'.endswith('bc') }} {{ 'abc'.endswith(('x', 'c')) }}
{{ 'hello'.find('l') }} {{ 'hello'.find('z') }} {{ 'hello'.find('l', 3) }} {{ 'hello'.rfind('l') }} {{ 'hello'.index('e') }} {{ 'hello'.rindex('l') }} {{ 'hello'.find('') }}
{{ 'hello'.count('l') }} {{ 'hello'.count('') }} {{ 'aaa'.count('aa') }} {{ 'hello'.count('l', 3) }}
{{ lines.splitlines() }} {{ 'a\r\nb\rc'.splitlines() }} {{ 'a\nb'.splitlines(true) }} {{ ''.splitlines() }}
{{ '42'.zfill(5) }} {{ '-42'.zfill(5) }} {{ '+1'.zfill(4) }} {{ 'abc'.zfill(2) }}
{{ 'x'.center(5, '*') }} {{ 'xy'.center(5, '*') }} {{ 'x'.ljust(3, '.') }} {{ 'x'.rjust(3, '.') }} {{ 'ab'.center(7) }}|
{{ '12'.isdigit() }} {{ 'a1'.isdigit() }} {{ ''.isdigit() }} {{ 'ab'.isalpha() }} {{ 'a1'.isalnum() }} {{ ' '.isspace() }} {{ 'ab'.islower() }} {{ 'AB'.isupper() }} {{ '½'.isnumeric() }} {{ '²'.isdigit() }} {{ '²'.isdecimal() }}
{{ 'a=b=c'.partition('=') }} {{ 'a=b=c'.rpartition('=') }} {{ 'abc'.partition('=') }} {{ 'abc'.rpartition('=') }}
{{ 'prefix-x'.removeprefix('prefix-') }} {{ 'x.log'.removesuffix('.log') }} {{ 'x'.removesuffix('') }}
{{ '{} {}'.format('a', 1) }} {{ '{1} {0}'.format('a', 'b') }} {{ '{x}-{y}'.format(x=1, y=[1, 'a']) }} {{ '{{}}'.format() }} {{ '{0[k]} {0[l][1]}'.format({'k': 'v', 'l': [1, 2]}) }}
{{ '{:>8}|{:<8}|{:^8}|{:*^9}'.format('a', 'b', 'c', 'd') }} {{ '{:5}|{:05d}|{:+d}|{: d}'.format(42, 42, 42, 42) }} {{ '{:x} {:#x} {:b} {:o} {:X}'.format(255, 255, 5, 8, 255) }}
{{ '{:.2f} {:8.3f} {:,} {:_} {:.1%} {:e} {:g}'.format(3.14159, 2.5, 1234567, 1234567, 0.256, 12345.678, 0.0001) }} {{ '{:,.2f}'.format(1234567.891) }}
{{ '{!r} {!s}'.format('a', 'b') }} {{ '{:{}}|'.format('a', 5) }} {{ '{:.3}'.format('abcdef') }} {{ '{:.3}'.format(3.14159) }} {{ '{}'.format(1.0) }} {{ '{:10.4}|'.format(2.0) }} {{ '{:-^20}'.format(' hi ') }}
{{ '{:d}'.format(true) }} {{ '{}'.format(true) }} {{ '{:>5}'.format(true) }} {{ '{:>6}'.format(1.5) }} {{ '{:06.2f}'.format(-1.5) }} {{ '{:=+7d}'.format(42) }}
{{ user.get('name') }} {{ user.get('nope') }} {{ user.get('nope', 'd') }} {{ user.keys()|list }} {{ user.values()|list|length }} {{ user.items()|list|first }}
{{ {'a': 1}.items()|list }} {{ {'b': 1, 'a': 2}.keys()|sort }} {{ {'a': 1}.copy() }}
{{ [1, 2, 1].count(1) }} {{ [1, 2].index(2) }} {{ (1, 2).index(1) }} {{ [1, 2].copy() }}
{{ (2.0).is_integer() }} {{ 2.5.is_integer() }}
{{ 'abc'['upper']() }}
{{ name.upper().lower().title()[0:3].replace('W', 'w') }}
{{ 'ǆ'.upper() }} {{ 'İ'.lower()|length }} {{ 'straße'.upper() }} {{ 'Straße'.casefold() if false else '' }}
"""

UNICODE = r"""
{{ uni }} {{ uni|upper }} {{ uni|length }} {{ uni[1] }} {{ uni[-1] }} {{ uni|reverse }}
{{ astral|length }} {{ astral[1] }} {{ astral[2:] }} {{ astral[::-1] }} {{ astral|reverse }} {{ astral|list }} {{ astral[1:4:2] }}
{{ astral.find('b') }} {{ astral|center(9) }}| {{ astral.zfill(8) }} {{ astral|truncate(4, true, '', 0) }} {{ astral.ljust(7, '🎉') }}
{{ '日本語'|length }} {{ '日本語'[1] }} {{ ['日本語'] }} {{ '日本語'|urlencode }} {{ '日本語'|tojson }}
{{ '🎉'|tojson }} {{ '🎉'|urlencode }} {{ ['🎉'] }} {{ '\U0001F389' }}
{{ 'é'|upper }} {{ 'É' == 'é'|upper }} {{ 'é' < 'z' }} {{ '🎉' > 'ﬀ' }} {{ ['🎉', 'ﬀ', 'a']|sort }}
{% set ключ = 5 %}{{ ключ }} {{ {'é': 1}.é }}
{{ 'naïve café'|title }} {{ 'àb'.isalpha() }} {{ '٣'.isdigit() }}
{{ 'a\u00a0b'.split() }} {{ '\u2003x\u2003'|trim }}|
{{ 'x\u0000y' | length }} {{ ['x\u0000y'] }} {{ ['\ud7ff', '\ue000', '\uffff'] }}
{{ ['🎉'*2, 'e\u0301'] }} {{ 'e\u0301'|length }}
"""

CONTRACT = r"""
{{ 'aaab' | regex_replace('a{,2}b', '-') }} {{ 'aab' | regex_match('a{,2}b') }} {{ 'aaab' | regex_match('a{,2}b') }} {{ 'aa{,2}' | regex_search('[{],2}') }}
{{ doc|from_json_string }}
{{ (doc|from_json_string).a[1] }} {{ (doc|from_json_string).b.c }}
{{ '[1, 12345678901234567890, 1.0, 1e2]'|from_json_string }}
{{ user|to_json_string }} {{ [1, 1.0, none, true, 'é']|to_json_string }} {{ {'b': 1, 'a': [1, {}]}|to_json_string(indent=2) }} {{ {'b': 1, 'a': 2}|to_json_string(sort_keys=true) }} {{ {'a': [1, 2]}|to_json_string(separators=(',', ':')) }}
{{ user|to_complex }} {{ [1, none]|to_complex }}
{{ quote|json_escape }} {{ tab|json_escape }} {{ uni|json_escape }}
{{ 'abc123'|regex_match('[a-z]+') }} {{ '123abc'|regex_match('[a-z]+') }} {{ 'ABC'|regex_match('[a-z]+', true) }} {{ 'ABC'|regex_match('[a-z]+', ignorecase=true) }} {{ 'ab'|regex_match('a$') }} {{ "ok\n"|regex_match('^ok$') }}
{{ '123abc'|regex_search('[a-z]+') }} {{ '123'|regex_search('[a-z]+') }} {{ 'xABCx'|regex_search('abc', true) }} {{ 'a|b'|regex_search('b|c') }}
{{ 'a1b22'|regex_replace('[0-9]+', '#') }} {{ 'john smith'|regex_replace('(\\w+) (\\w+)', '\\2 \\1') }} {{ 'john smith'|regex_replace('(?P<a>\\w+) (?P<b>\\w+)', '\\g<b>, \\g<a>') }} {{ 'AbC'|regex_replace('[a-z]', '-', true) }} {{ 'aaa'|regex_replace('', '-') }} {{ 'a.b'|regex_replace('\\.', '\\\\') }} {{ 'x$1'|regex_replace('x', '$&') }}
{{ 'id=42 id=7'|regex_substring('id=(\\d+)') }} {{ 'id=42 id=7'|regex_substring('id=(\\d+)', 1) }} {{ 'id=42 id=7'|regex_substring('id=\\d+', -1) }} {{ 'a=1,b=2'|regex_substring('(\\w)=(\\d)', 1) }} {{ 'XY'|regex_substring('x', 0, true) }}
{{ 'é ñ'|regex_replace('\\w', 'x') }} {{ '٣'|regex_match('\\d') }} {{ 'a\u00a0b'|regex_replace('\\s', '_') }} {{ 'a-b'|regex_replace('\\W', '_') }} {{ 'x1'|regex_replace('[\\d]', '#') }} {{ 'ab\nc'|regex_replace('(?s)b.c', 'X') }} {{ 'aé'|regex_search('\u00e9\\Z') }} {{ 'a]b'|regex_replace('[]]', '_') }} {{ 'a^b'|regex_replace('[^]a]', '_') }} {{ 'ab'|regex_replace('a(?#note)b', 'c') }} {{ "a\nb"|regex_replace('(?m)^', '> ') }}
{{ path|basename }} {{ path|dirname }} {{ 'file'|basename }} {{ 'file'|dirname }}| {{ '/'|dirname }} {{ '/a'|dirname }} {{ 'a/b/'|basename }}| {{ '//a'|dirname }} {{ 'a//b'|dirname }}
{{ nothing|use_none }} {{ 'x'|use_none }}
{{ 1 is in [1, 2] }} {{ 'z' is in 'abc' }}
"""


def templates_of(source):
    return source if isinstance(source, list) else [line for line in source.strip().split("\n")]


def case_of(template):
    try:
        return {"template": template, "text": environment().from_string(template).render(CONTEXT)}
    except Exception as error:  # the class is what the test compares
        return {"template": template, "error": type(error).__name__}


def main():
    groups = {
        "expressions": EXPRESSIONS,
        "printing": PRINTING,
        "filters": FILTERS,
        "tests": TESTS,
        "statements": STATEMENTS,
        "whitespace": WHITESPACE,
        "undefined": UNDEFINED,
        "errors": ERRORS,
        "methods": METHODS,
        "unicode": UNICODE,
        "contract-filters": CONTRACT,
    }
    total = 0
    for name, source in groups.items():
        cases = [case_of(template) for template in templates_of(source)]
        total += len(cases)
        content = {"context": CONTEXT, "cases": cases}
        text = json.dumps(content, indent=1, ensure_ascii=True)
        (FOLDER / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    print(f"{total} cases")


if __name__ == "__main__":
    main()
