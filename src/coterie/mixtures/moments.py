"""EM of Gaussian mixtures: rows in memory or in blocks, the moments that an M-step needs of them, and the M-step.

Moments of blocks add, so that rows in memory, chunks of a file and Dask share one M-step.

Covariances of single clusters are estimated together with those of the others, as a posterior mode under a common
prior: the covariance of a cluster is averaged with one of all clusters, which counts as ``PSEUDO_ROWS`` rows per
column. Clusters of few rows therefore cannot shrink to a point.

Shapes: N rows, K clusters, C the clusters and the uniform component, D columns.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any, Protocol

import numpy as np

from coterie import em
from coterie.geometry.spread import Extent
from coterie.mixtures.gaussians import Gaussians, Kind, log_volume, shares_of

PSEUDO_ROWS = 1.0
LEAST_VARIANCE = 1e-6  # relative to that of a column: EM must not shrink clusters to single points
VALUES_PER_PARAMETER = 3  # with fewer, the likelihood of many small clusters outweighs the BIC
MANY_COLUMNS = 64  # beyond, all pairs of columns are too many to be kept for a part of the rows
PART = 2**19  # numbers of the largest temporary array of an E-step


@dataclass(frozen=True)
class Moments:
    """What an M-step needs of rows and their shares: sums, which add."""

    total_C: np.ndarray  # of the clusters and of the uniform component, if there is one
    sums_KD: np.ndarray
    squares: np.ndarray  # (K, D), or for matrices (D, D) and (K, D, D)
    log_likelihood: float = 0.0  # of the mixture that gave the shares

    @classmethod
    def of(cls, values_ND: np.ndarray, counted_NC: np.ndarray, n_clusters: int, kind: Kind) -> "Moments":
        counted_KN = np.ascontiguousarray(counted_NC[:, :n_clusters].T)
        if kind == "tied":
            squares = (values_ND * counted_KN.sum(0)[:, None]).T @ values_ND
        elif kind == "full":
            squares = _squares(values_ND, counted_KN)
        else:
            squares = counted_KN @ np.square(values_ND)
        return cls(counted_NC.sum(0), counted_KN @ values_ND, squares)

    def __add__(self, other: "Moments") -> "Moments":
        return Moments(
            self.total_C + other.total_C,
            self.sums_KD + other.sums_KD,
            self.squares + other.squares,
            self.log_likelihood + other.log_likelihood,
        )


def _squares(values_ND: np.ndarray, counted_KN: np.ndarray) -> np.ndarray:
    """For every cluster the sum of the products of all pairs of columns, (K, D, D)."""
    n, dim = values_ND.shape
    if dim > MANY_COLUMNS:
        return np.stack([(values_ND.T * share_N) @ values_ND for share_N in counted_KN])
    values_DN, pairs = np.ascontiguousarray(values_ND.T), np.empty((dim * (dim + 1) // 2, n))
    lasts = np.cumsum(np.arange(dim, 0, -1))
    for column, last in enumerate(lasts):
        np.multiply(values_DN[column:], values_DN[column], out=pairs[last - dim + column : last])
    upper, squares_KDD = np.triu_indices(dim), np.empty((len(counted_KN), dim, dim))
    squares_KDD[:, upper[0], upper[1]] = squares_KDD[:, upper[1], upper[0]] = counted_KN @ pairs.T
    return squares_KDD


def expected_moments(
    values_ND: np.ndarray,
    counts_N: np.ndarray | None,
    mixture: Gaussians,
    on_shares: Callable[[np.ndarray], None] | None = None,
    unit: Callable[[np.ndarray], np.ndarray] = lambda values_ND: values_ND,
) -> Moments:
    """The E-step of some rows, brought to ``unit``: moments with the shares that a mixture gives.

    It goes in parts that fit into the cache. ``on_shares`` gets the shares of all rows.
    """
    size = max(32, PART // max(1, mixture.n_clusters * values_ND.shape[1]))
    moments, shares = [], []
    for first in range(0, max(1, len(values_ND)), size):
        part = slice(first, first + size)
        rows_ND = unit(values_ND[part])
        shares_NC, density_N = shares_of(mixture.log_joint(rows_ND))
        if on_shares is not None:
            shares.append(shares_NC)
        if counts_N is not None:
            shares_NC, density_N = shares_NC * counts_N[part, None], density_N * counts_N[part]
        found = Moments.of(rows_ND, shares_NC, mixture.n_clusters, mixture.kind)
        moments.append(replace(found, log_likelihood=float(density_N.sum())))
    if on_shares is not None:
        on_shares(np.concatenate(shares))
    return reduce(add, moments)


@dataclass(frozen=True)
class Frame:
    """What all fits of the same rows share."""

    size: float
    floor_D: np.ndarray  # smallest variance of each column within a cluster
    log_volume: float

    def determine(self, mixture: Gaussians) -> bool:
        """Whether there are ``VALUES_PER_PARAMETER`` values or more for every parameter of a mixture."""
        return VALUES_PER_PARAMETER * mixture.n_parameters <= self.size * len(self.floor_D)

    def bic(self, mixture: Gaussians, log_likelihood: float) -> float:
        """Smaller is better; infinite for several clusters that the rows do not determine."""
        if mixture.n_clusters > 1 and not self.determine(mixture):
            return math.inf
        return -2 * log_likelihood + mixture.n_parameters * math.log(self.size)

    def evidence(self, mixture: Gaussians, log_likelihood: float) -> float:
        """The BIC in which the parameters of a cluster are known from its own rows only; smaller is better.

        It approximates the marginal likelihood more closely than the BIC if clusters have many parameters each, and is
        used to compare kinds of covariance. For numbers of clusters the BIC is safer: small clusters cost more. It is
        infinite for a mixture that the rows do not determine.
        """
        if not self.determine(mixture):
            return math.inf
        log_rows = float(np.log(np.maximum(mixture.weights_K * self.size, 1.0)).sum())
        penalty = mixture.n_common_parameters * math.log(self.size) + mixture.n_own_parameters * log_rows
        return -2 * log_likelihood + penalty


@dataclass(frozen=True)
class Rows(Frame):
    """Rows in memory, from which the number of clusters is found."""

    values_ND: np.ndarray
    counts_N: np.ndarray | None = None  # how many times each row counts, by default once

    @classmethod
    def of(cls, values_ND: np.ndarray, counts_N: np.ndarray | None = None, extent: Extent | None = None) -> "Rows":
        """``extent`` is that of the rows of which these are a sample, if they are one."""
        extent = extent or Extent.of(values_ND, counts_N)
        inner_D = np.square(np.subtract(*np.quantile(values_ND, [0.75, 0.25], axis=0)))  # few far rows do not change it
        var_D = np.where(inner_D > 0, np.minimum(extent.var_D, inner_D), extent.var_D)
        floor_D = LEAST_VARIANCE * np.maximum(var_D, LEAST_VARIANCE * var_D.mean() + np.finfo(float).tiny)
        size = float(len(values_ND) if counts_N is None else counts_N.sum())
        return cls(size, floor_D, log_volume(np.stack([extent.low_D, extent.high_D])), values_ND, counts_N)

    def counted(self, values_NC: np.ndarray) -> np.ndarray:
        """Values of every row, as many times as the row counts."""
        return values_NC if self.counts_N is None else values_NC * self.counts_N[:, None]

    def expected(self, mixture: Gaussians, on_shares: Callable[[np.ndarray], None] | None = None) -> Moments:
        """The E-step."""
        return expected_moments(self.values_ND, self.counts_N, mixture, on_shares)


class Total(Protocol):
    """Blocks of rows, whose values of ``function(block, state)`` add up to a total."""

    def total(self, function: Callable[[Any, Any], Any], state: Any) -> Any: ...


@dataclass(frozen=True)
class RowsInBlocks(Frame):
    """All rows of a source. They are read in every E-step, and brought to the place and the scale of the mixture."""

    blocks: Total
    unit: "Unit"

    def expected(self, mixture: Gaussians, on_shares: None = None) -> Moments:
        """The E-step."""
        return self.blocks.total(_block_moments, (mixture, self.unit))


@dataclass(frozen=True)
class Unit:
    """Where a mixture is fitted: rows minus ``center_D``, times ``factor_D``."""

    center_D: np.ndarray
    factor_D: np.ndarray

    def __call__(self, values_ND: np.ndarray) -> np.ndarray:
        away_ND = values_ND.astype(np.float64) - self.center_D
        return np.multiply(away_ND, self.factor_D, out=away_ND)

    def of(self, extent: Extent) -> Extent:
        """The extent of the same rows in this unit."""
        low_D, high_D = self(extent.low_D), self(extent.high_D)
        return Extent(extent.size, self(extent.mean_D), extent.var_D * np.square(self.factor_D), low_D, high_D)


def _block_moments(block: Any, state: tuple[Gaussians, Unit]) -> Moments:
    """The E-step of one block."""
    mixture, unit = state
    return expected_moments(block.X, block.weight, mixture, unit=unit)


def estimate(rows: Frame, moments: Moments, kind: Kind) -> Gaussians:
    """The M-step: the mixture with these moments."""
    total_K = np.maximum(moments.total_C[: len(moments.sums_KD)], 1e-10)
    centers_KD = moments.sums_KD / total_K[:, None]
    return Gaussians(
        centers_KD,
        total_K / rows.size,
        _covariances(moments.squares, total_K, centers_KD, kind, rows.floor_D),
        kind,
        float(moments.total_C[-1] / rows.size) if len(moments.total_C) > len(total_K) else 0.0,
        rows.log_volume,
    )


def estimate_from(rows: Rows, shares_NC: np.ndarray, kind: Kind, noise: bool) -> Gaussians:
    """The mixture for given shares of the rows, the last column being that of the uniform component."""
    counted_NC = rows.counted(shares_NC)
    return estimate(rows, Moments.of(rows.values_ND, counted_NC, counted_NC.shape[1] - noise, kind), kind)


def _covariances(
    squares: np.ndarray, total_K: np.ndarray, centers_KD: np.ndarray, kind: Kind, floor_D: np.ndarray
) -> np.ndarray:
    all_in = total_K.sum()
    if kind == "tied":
        return (squares - (centers_KD.T * total_K) @ centers_KD) / all_in + np.diag(floor_D)
    if kind == "full":
        scatter_KDD = squares - total_K[:, None, None] * centers_KD[:, :, None] * centers_KD[:, None]
        return _pooled(scatter_KDD, total_K, PSEUDO_ROWS * len(floor_D), np.diag(floor_D))
    scatter_KD = np.maximum(squares - total_K[:, None] * np.square(centers_KD), 0.0)
    if kind == "tied-spherical":
        return np.asarray(scatter_KD.mean(1).sum() / all_in + floor_D.mean())
    if kind == "spherical":
        return _pooled(scatter_KD.mean(1), total_K, PSEUDO_ROWS, floor_D.mean())
    return _pooled(scatter_KD, total_K, PSEUDO_ROWS, floor_D)


def _pooled(scatter: np.ndarray, total_K: np.ndarray, extra: float, floor: np.ndarray) -> np.ndarray:
    """Covariances of the clusters, each averaged with the common one, which counts as ``extra`` rows.

    The common one is a harmonic mean, in which thin clusters of different directions stay thin; a first average with
    the arithmetic mean makes every cluster invertible.
    """
    axes = (..., *(None,) * (scatter.ndim - 1))
    total = total_K[axes]
    invert = np.linalg.inv if scatter.ndim == 3 else np.reciprocal
    first = (scatter + extra * scatter.sum(0) / total_K.sum()) / (total + extra) + floor
    common = invert((total * invert(first)).sum(0) / total_K.sum())
    return (scatter + extra * common) / (total + extra) + floor


@dataclass(frozen=True)
class Fit:
    """A mixture after EM, with the log-likelihood of the mixture before the last M-step."""

    mixture: Gaussians
    log_likelihood: float
    n_iter: int
    converged: bool


def run_em(
    rows: Rows | RowsInBlocks,
    mixture: Gaussians,
    max_iter: int,
    tol: float = 0.0,
    on_shares: Callable[[np.ndarray], None] | None = None,
) -> Fit:
    """EM until the mean log-likelihood rises by less than ``tol``. ``on_shares`` gets the shares of every E-step."""
    reached = [-math.inf, -math.inf]

    def e_step(state: Gaussians) -> Moments:
        return rows.expected(state, on_shares)  # type: ignore[arg-type]

    def settled(old: Gaussians, new: Gaussians, found: Moments) -> bool:
        reached[0], reached[1] = reached[1], found.log_likelihood
        return reached[1] - reached[0] < tol * rows.size

    def step(state: Gaussians, found: Moments) -> Gaussians:
        return estimate(rows, found, state.kind)

    found = em.run(mixture, e_step, step, max_iter=max_iter, stop=settled)
    return Fit(found.state, reached[1], found.n_iter, found.converged)
