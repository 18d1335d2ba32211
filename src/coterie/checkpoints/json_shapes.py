"""Types of the JSON in model, checkpoint and card files, checked before anything is made of it.

A shape is a type, None, a set of possible texts, a tuple of shapes of which one must hold, ``[shape]`` for a list, or a
dictionary with the shapes of entries. An entry whose name ends in "?" may be missing; entries that are not named are
ignored. An ``int`` is no truth value and fits into 64 bits; a ``float`` is finite and may be written as an integer.
"""

import math
from typing import Any

SCALAR = (None, bool, int, float, str)


def check(value: Any, shape: Any, name: str) -> None:
    """Raise a ValueError that names the first part of a value that does not have its shape."""
    if isinstance(shape, dict) and isinstance(value, dict):
        for key, inner in shape.items():
            entry = key.removesuffix("?")
            if entry in value:
                check(value[entry], inner, f"{name}.{entry}")
            elif entry == key:
                raise ValueError(f"{name} has no {key}")
    elif isinstance(shape, list) and isinstance(value, list):
        for place, each in enumerate(value):
            check(each, shape[0], f"{name}[{place}]")
    elif isinstance(shape, tuple):
        if not any(_fits(value, one) for one in shape):
            raise ValueError(f"{name} has a value of a wrong type, {value!r:.40}")
    elif not _is(value, shape):
        raise ValueError(f"{name} has a value of a wrong type, {value!r:.40}")


def _fits(value: Any, shape: Any) -> bool:
    try:
        check(value, shape, "")
    except ValueError:
        return False
    return True


def _is(value: Any, shape: Any) -> bool:
    """Whether a value has a shape that has no parts."""
    if shape is None:
        return value is None
    if isinstance(shape, set | frozenset):
        return isinstance(value, str) and value in shape
    if shape is float:
        return (type(value) is float and math.isfinite(value)) or _is(value, int)
    return type(value) is shape and (shape is not int or abs(value) < 2**63)
