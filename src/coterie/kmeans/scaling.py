"""The size of numbers: which values are refused, and which are scaled by a power of two, so that 2^s X is fitted as X.

Compiled kernels square distances and keep bounds in single precision, which is safe for data of ordinary size. Other
data are scaled before a fit, and the result is scaled back.
"""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy import sparse

from coterie.kmeans.algorithm import Algorithm
from coterie.kmeans.iteration import Result

_CACHED = 2**17  # values that stay in the cache of a processor
_SMALLEST = 2.0**-500  # of a largest absolute value: squares of smaller ones underflow
_SAFE = {4: 40, 8: 100}  # by bytes per value: largest absolute values from 2^-e to 2^e need no scaling


def largest_value(X) -> float:
    """The largest absolute value of an array or CSR matrix, NaN if any value is NaN, and 0 if there are none."""
    values = X.data if sparse.issparse(X) else X
    if values.size <= _CACHED or not values.flags.c_contiguous:
        return max(float(values.max()), -float(values.min())) if values.size else 0.0
    values = values.reshape(-1)  # in pieces, so that the second pass does not read from main memory
    pieces = [values[first : first + _CACHED] for first in range(0, len(values), _CACHED)]
    return float(np.max([[piece.max(), -piece.min()] for piece in pieces]))


def check_values(X, place: Callable[[int, int], str], smallest: float = _SMALLEST) -> float:
    """The largest absolute value of X, after a check that all values are finite and that squares do not overflow.

    The message of the ValueError is the end of a sentence about X; ``place`` words a row and a column. ``smallest``
    is what the largest value must exceed: 0 for a block of larger data.
    """
    values = X.data if sparse.issparse(X) else X
    largest = largest_value(X)

    def where() -> str:
        first = int(np.argmax(np.isnan(values) if math.isnan(largest) else np.abs(values) == largest))
        if sparse.issparse(X):
            return f" ({place(int(np.searchsorted(X.indptr, first, side='right')) - 1, int(X.indices[first]))})"
        return f" ({place(first // X.shape[1], first % X.shape[1])})"

    check_size(largest, values.dtype, X.shape[0], X.shape[1], where, smallest)
    return largest


def check_size(
    largest: float, dtype, n: int, d: int, where: Callable[[], str] = str, smallest: float = _SMALLEST
) -> None:
    """Raise a ValueError, as :func:`check_values` does, if this is no largest absolute value for n rows of d values."""
    if not math.isfinite(largest):
        raise ValueError(
            f"contains {'NaN' if math.isnan(largest) else 'infinity'}{where()}: remove such rows or fill the values "
            "first (for example with sklearn.impute.SimpleImputer)."
        )
    scale = "scale the columns, for example with sklearn.preprocessing.StandardScaler"
    if 0 < largest < smallest:
        raise ValueError(f"has no value larger than {largest:.2g}, so that squared distances underflow: {scale}.")
    # The largest squared distance is d (2 max)². Sums of n of them are taken in float64 and must stay finite too.
    limit = math.sqrt(float(np.finfo(dtype).max) / (16.0 * max(1, d) * (n if dtype == np.float64 else 1)))
    if largest > limit:
        raise ValueError(
            f"has a value of size {largest:.2g}{where()}, whose squared distances overflow {dtype} (the limit here is "
            f"{limit:.1g}): {scale}{', or pass float64' if dtype == np.float32 else ''}."
        )


def exponent_of(*arrays, largest: float | None = None) -> int:
    """The exponent of the largest absolute value, or 0 if the values are of ordinary size.

    ``largest`` is the largest absolute value of the first array, if it is known.
    """
    found = [largest_value(array) for array in (arrays if largest is None else arrays[1:])]
    most = max([0.0 if largest is None else largest, *found])
    return max((exponent_of_size(most, array.dtype) for array in arrays), key=abs)


def exponent_of_size(largest: float, dtype) -> int:
    """The exponent of a largest absolute value, or 0 if it is of ordinary size."""
    exponent = math.frexp(largest)[1]
    return exponent if largest and abs(exponent) > _SAFE[np.dtype(dtype).itemsize] else 0


def scaled(X, exponent: int):
    """X · 2^exponent. For exponent 0, X is returned without a copy."""
    if not exponent:
        return X
    if sparse.issparse(X):
        X = X.copy()
        X.data = np.ldexp(X.data, exponent)
        return X
    return np.ldexp(X, exponent)


def scaled_algorithm(algorithm: Algorithm, exponent: int) -> Algorithm:
    """The algorithm for data multiplied by 2^exponent. gamma is an inverse squared distance."""
    if not exponent:
        return algorithm
    gamma = None if algorithm.gamma is None else float(np.ldexp(algorithm.gamma, -2 * exponent))
    prices = None if algorithm.prices is None else np.ldexp(algorithm.prices, 2 * exponent)
    return replace(algorithm, gamma=gamma, prices=prices)


def scaled_result(result: Result, exponent: int) -> Result:
    """The result multiplied by 2^exponent."""
    if not exponent:
        return result
    return replace(
        result,
        centers=np.ldexp(result.centers, exponent),
        inertia=float(np.ldexp(result.inertia, 2 * exponent)),
        gamma=None if result.gamma is None else float(np.ldexp(result.gamma, -2 * exponent)),
        limits=None if result.limits is None else np.ldexp(result.limits, 2 * exponent),
        prices=None if result.prices is None else np.ldexp(result.prices, 2 * exponent),
        trajectory=[(np.ldexp(centers, exponent), assignments) for centers, assignments in result.trajectory],
    )
