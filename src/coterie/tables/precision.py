"""The precision of computations: single if all numbers have it, and otherwise double. Half precision is refused."""

from collections.abc import Iterable
from typing import Any

import numpy as np

HALF = "float16, which overflows at 65,504 and has a low precision: convert to float32 first, with astype('float32')."


def is_half(dtype: Any) -> bool:
    """Whether this type of numpy, pandas or torch has half precision."""
    return _name(dtype) in ("float16", "bfloat16")


def working_dtype(dtypes: Iterable[Any]) -> np.dtype:
    """float32 if all types are float32, in any order of the bytes, and float64 otherwise. ValueError for float16."""
    names = set(map(_name, dtypes))
    if names & {"float16", "bfloat16"}:
        raise ValueError(f"X is {HALF}")
    return np.dtype(np.float32 if names == {"float32"} else np.float64)


def _name(dtype: Any) -> str:
    native = dtype.newbyteorder("=") if isinstance(dtype, np.dtype) else dtype
    return str(native).lower().removeprefix("torch.")
