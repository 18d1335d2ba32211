"""Data of extreme size, scaled by a power of two: exact, so that labels of 2^s X are those of X.

Compiled kernels keep bounds in single precision and square distances, which is safe for data of ordinary size. Other
data are scaled on the way in, and the result is scaled back on the way out.
"""

from dataclasses import replace

import numpy as np
from scipy import sparse

from coterie.kmeans.algorithm import Algorithm
from coterie.kmeans.engine import Result

_SAFE = {4: 40, 8: 100}  # by bytes per value: largest absolute values from 2^-e to 2^e need no scaling


def exponent_of(*arrays) -> int:
    """The exponent of the largest absolute value, or 0 if the values are of ordinary size."""
    largest, safe = 0.0, 100
    for array in arrays:
        values = array.data if sparse.issparse(array) else array
        if values.size:
            largest = max(largest, float(values.max()), -float(values.min()))
            safe = min(safe, _SAFE[values.dtype.itemsize])
    exponent = int(np.frexp(largest)[1])
    return exponent if largest and abs(exponent) > safe else 0


def scaled(X, exponent: int):
    """X · 2^exponent; X itself, and no copy, for 0."""
    if not exponent:
        return X
    if sparse.issparse(X):
        X = X.copy()
        X.data = np.ldexp(X.data, exponent)
        return X
    return np.ldexp(X, exponent)


def scaled_algorithm(algorithm: Algorithm, exponent: int) -> Algorithm:
    """The algorithm for data times 2^exponent: gamma is per squared unit."""
    if not exponent or algorithm.gamma is None:
        return algorithm
    return replace(algorithm, gamma=float(np.ldexp(algorithm.gamma, -2 * exponent)))


def scaled_result(result: Result, exponent: int) -> Result:
    """The result in units that are 2^-exponent as large."""
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
