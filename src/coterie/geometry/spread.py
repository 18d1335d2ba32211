"""Weight, means, variances and bounds of the columns of rows, which add up over blocks, and their principal axes."""

from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np

PART = 2**16  # values in double precision at a time, which stay in the cache


@dataclass(frozen=True)
class Spread:
    """The total weight of rows, and the means and variances of their columns."""

    size: float
    mean_D: np.ndarray
    var_D: np.ndarray

    @classmethod
    def of(cls, values_ND: np.ndarray, counts_N: np.ndarray | None = None) -> Any:
        """The spread of at least one row. ``counts_N`` is how many times each row counts, by default once."""
        n = max(1, PART // max(1, values_ND.shape[1]))
        parts = [slice(first, first + n) for first in range(0, len(values_ND), n)]
        return reduce(add, (cls._of_part(values_ND[p], None if counts_N is None else counts_N[p]) for p in parts))

    @classmethod
    def of_block(cls, block: Any, _: Any = None) -> Any:
        """The spread of a block of rows, for passes over all blocks."""
        return cls.of(block.X, block.weight)

    @classmethod
    def _of_part(cls, values_ND: np.ndarray, counts_N: np.ndarray | None) -> Any:
        values_ND = values_ND.astype(np.float64, copy=False)
        size = float(len(values_ND) if counts_N is None else counts_N.sum())
        share_N = np.full(len(values_ND), 1 / size) if counts_N is None else counts_N / (size or 1.0)
        mean_D = share_N @ values_ND
        return cls(size, mean_D, share_N @ np.square(values_ND - mean_D))

    def __add__(self, other: "Spread") -> Any:
        return Spread(*self._sum(other))

    def _sum(self, other: "Spread") -> tuple[float, np.ndarray, np.ndarray]:
        size, gap_D = self.size + other.size, other.mean_D - self.mean_D
        share = other.size / size if size else 0.0
        var_D = (1 - share) * self.var_D + share * other.var_D + share * (1 - share) * np.square(gap_D)
        return size, self.mean_D + share * gap_D, var_D


@dataclass(frozen=True)
class Extent(Spread):
    """The same with the bounds of the columns."""

    low_D: np.ndarray
    high_D: np.ndarray

    @classmethod
    def _of_part(cls, values_ND: np.ndarray, counts_N: np.ndarray | None) -> "Extent":
        bounds = (bound.astype(np.float64) for bound in (values_ND.min(0), values_ND.max(0)))
        spread = Spread._of_part(values_ND, counts_N)
        return cls(spread.size, spread.mean_D, spread.var_D, *bounds)

    def __add__(self, other: "Extent") -> "Extent":  # type: ignore[override]
        low_D, high_D = np.minimum(self.low_D, other.low_D), np.maximum(self.high_D, other.high_D)
        return Extent(*self._sum(other), low_D, high_D)


def principal_axes(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The principal axes (min(n, d), d) of centred rows X (n, d) and the variances along them, the largest first.

    The largest entry of every axis is positive, so that signs do not depend on the linear algebra library.
    """
    from sklearn.utils.extmath import svd_flip  # slow to import, and reading a table needs no axes

    n, d = X.shape
    if n >= d:  # the covariance is the smaller matrix
        variances, columns = np.linalg.eigh(X.T @ X / n)
        variances, axes = np.maximum(variances[::-1], 0.0), columns.T[::-1].copy()
    else:
        _, values, axes = np.linalg.svd(X, full_matrices=False)
        variances = values**2 / n
    return svd_flip(None, axes, u_based_decision=False)[1], variances
