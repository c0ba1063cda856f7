"""Makes the golden file beside it: how Python compares the values and patterns that operators of criteria are given.

Run with Python 3: `python3 tests/golden/criteria/make.py`. The suite only reads the file.
"""

import fnmatch
import json
import random
import re
from pathlib import Path

TEXTS = [
    "", "a", "A", "ab", "aB", "b", "1", "true", "null", "Äb", "äB", "ß", "SS", "x\ny", "x\n", "\U0001f600", "a\U0001f600",
    "ΑΣ", "ας", "[", "a.c", "^a", "b$", "(?i)A", ".*", "x.y", "a*", "?", "[!a]", "\\d+", "a{2}", "\\w", "[a-b]?",
]  # fmt: skip
NUMBERS = [0, 1, 2, -1, 1.5, 1.0, 0.1, 10**15]


def text(value):
    if not isinstance(value, str):
        raise TypeError(value)
    return value


OPERATORS = {
    "eq": lambda value, pattern: value == pattern,
    "neq": lambda value, pattern: value != pattern,
    "ieq": lambda value, pattern: text(value).lower() == text(pattern).lower(),
    "contains": lambda value, pattern: pattern in value,
    "ncontains": lambda value, pattern: pattern not in value,
    "icontains": lambda value, pattern: text(pattern).lower() in text(value).lower(),
    "incontains": lambda value, pattern: text(pattern).lower() not in text(value).lower(),
    "startswith": lambda value, pattern: text(value).startswith(text(pattern)),
    "istartswith": lambda value, pattern: text(value).lower().startswith(text(pattern).lower()),
    "endswith": lambda value, pattern: text(value).endswith(text(pattern)),
    "iendswith": lambda value, pattern: text(value).lower().endswith(text(pattern).lower()),
    "lt": lambda value, pattern: value < pattern,
    "gt": lambda value, pattern: value > pattern,
    "exists": lambda value, pattern: value is not None,
    "nexists": lambda value, pattern: value is None,
    "in": lambda value, pattern: value in pattern,
    "nin": lambda value, pattern: value not in pattern,
    "matchwildcard": lambda value, pattern: fnmatch.fnmatchcase(text(value), text(pattern)),
    "regex": lambda value, pattern: re.search(text(pattern), text(value)) is not None,
    "iregex": lambda value, pattern: re.search(text(pattern), text(value), re.IGNORECASE) is not None,
    "matchregex": lambda value, pattern: re.match(text(pattern), text(value), re.DOTALL) is not None,
}


def some_value(choose, depth=0):
    kind = choose.random()
    if kind < 0.5:
        return choose.choice(TEXTS)
    if kind < 0.65:
        return choose.choice(NUMBERS)
    if kind < 0.72:
        return choose.choice([True, False])
    if kind < 0.76:
        return None
    if depth > 1:
        return 1
    if kind < 0.9:
        return [some_value(choose, depth + 1) for _ in range(choose.randint(0, 3))]
    return {choose.choice("abA1"): some_value(choose, depth + 1) for _ in range(choose.randint(0, 2))}


def compare(name, value, pattern):
    if pattern is None and name not in ("neq", "exists", "nexists"):
        return False
    try:
        return bool(OPERATORS[name](value, pattern))
    except Exception:
        return None


def make_cases():
    """For each operator some pairs that fit, some that do not, and some that cannot be compared (null)."""
    choose = random.Random(56)
    cases = []
    for name in OPERATORS:
        wanted = {True: 25, False: 25, None: 15 if compare(name, 1, "a") is None or name in ("lt", "in") else 0}
        seen = set()
        for _ in range(200_000):
            value = some_value(choose)
            pattern = value if choose.random() < 0.05 else some_value(choose)
            result = compare(name, value, pattern)
            case = json.dumps([name, value, pattern, result])
            if wanted.get(result, 0) > 0 and case not in seen:
                wanted[result] -= 1
                seen.add(case)
                cases.append(case)
    return cases


if __name__ == "__main__":
    about = json.dumps("[operator, value, pattern, whether they fit; null: they cannot be compared]")
    target = Path(__file__).parent / "comparisons.json"
    target.write_text('{"about": %s,\n"cases": [\n%s\n]}\n' % (about, ",\n".join(make_cases())))
