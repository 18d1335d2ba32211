"""Scaling of very large or very small data by a power of two, which is exact: 2^s X gets the labels of X.

Compiled kernels square distances and keep bounds in single precision, which is safe for data of ordinary size. Other
data are scaled before a fit, and the result is scaled back.
"""

import math
from dataclasses import replace

import numpy as np
from scipy import sparse

from coterie.kmeans.algorithm import Algorithm
from coterie.kmeans.iteration import Result

_CACHED = 2**17  # values that stay in the cache of a processor
_SAFE = {4: 40, 8: 100}  # by bytes per value: largest absolute values from 2^-e to 2^e need no scaling


def largest_value(X) -> float:
    """The largest absolute value of an array or CSR matrix, NaN if any value is NaN, and 0 if there are none."""
    values = X.data if sparse.issparse(X) else X
    if values.size <= _CACHED or not values.flags.c_contiguous:
        return max(float(values.max()), -float(values.min())) if values.size else 0.0
    values = values.reshape(-1)  # in pieces, so that the second pass does not read from main memory
    pieces = [values[first : first + _CACHED] for first in range(0, len(values), _CACHED)]
    return float(np.max([[piece.max(), -piece.min()] for piece in pieces]))


def exponent_of(*arrays, largest: float | None = None) -> int:
    """The exponent of the largest absolute value, or 0 if the values are of ordinary size.

    ``largest`` is the largest absolute value of the first array, if it is known.
    """
    found = [largest_value(array) for array in (arrays if largest is None else arrays[1:])]
    most = max([0.0 if largest is None else largest, *found])
    safe = min(_SAFE[array.dtype.itemsize] for array in arrays)
    exponent = math.frexp(most)[1]
    return exponent if most and abs(exponent) > safe else 0


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
    if not exponent or algorithm.gamma is None:
        return algorithm
    return replace(algorithm, gamma=float(np.ldexp(algorithm.gamma, -2 * exponent)))


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
        trajectory=[(np.ldexp(centers, exponent), assignments) for centers, assignments in result.trajectory],
    )
