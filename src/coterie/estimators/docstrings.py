"""Docstrings of a family of estimators: what its members have in common is written once, in their base class."""

import inspect
import re

_ENTRY = re.compile(r"^(\w+) : .*\n(?:    .*\n)+", re.MULTILINE)
_NAMES = re.compile(r"^<([\w, ]+)>\n", re.MULTILINE)


def completed(text: str, base: str) -> str:
    """A docstring whose lines of names, such as ``<init, tol>``, are replaced by the entries of the base."""
    entries = {entry[1]: entry[0] for entry in _ENTRY.finditer(inspect.cleandoc(base) + "\n")}

    def listed(names: re.Match[str]) -> str:
        return "".join(entries[name] for name in names[1].split(", "))

    return _NAMES.sub(listed, inspect.cleandoc(text) + "\n")
