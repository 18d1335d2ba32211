"""The engine on blocks of rows: every iteration is one pass (two with trimming) over chunks or Dask blocks.

Only centres and sums are kept between passes. The result is that of the engines in memory.
"""

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from coterie.kmeans import block_statistics, iteration
from coterie.kmeans.algorithm import Algorithm
from coterie.kmeans.block_statistics import Step
from coterie.kmeans.family import VARIANTS, Row
from coterie.kmeans.iteration import Centers, Result
from coterie.kmeans.kernel_input import check_cost
from coterie.kmeans.sphere import on_sphere
from coterie.kmeans.statistics import Statistics


class Passes(Protocol):
    """Passes over one set of blocks."""

    def total(self, function: Any, state: Any) -> Any:
        """The sum of ``function(block, state)`` over all blocks that have rows."""


@dataclass(frozen=True)
class Summed:
    """The result of the E-step on all blocks. Labels are not collected."""

    statistics: Statistics
    limits: np.ndarray | None
    moved: float | None  # share of the rows that moved, from a sample of every block; None if nobody asked

    labels = None

    @property
    def objective(self) -> float:
        return self.statistics.inertia


class BlockEngine:
    """One algorithm on one set of blocks, whose rows have type ``dtype``."""

    # Equal labels give equal sums, bit for bit, so centres stand still when labels repeat: one rule is enough.
    labels_decide = False

    def __init__(
        self,
        passes: Passes,
        algorithm: Algorithm,
        dtype: Any,
        *,
        watched: bool = False,
        device: str = "cpu",
        n_threads: int | None = 1,
    ):
        self.passes, self.algorithm, self.dtype, self.watched = passes, algorithm, np.dtype(dtype), watched
        self.blank = Step(algorithm, np.empty((0, 0)), device=device, n_threads=n_threads)
        self.previous: np.ndarray | None = None
        self.number = 0

    def e_step(self, state: Centers) -> Summed:
        previous = self.previous if self.watched else None
        wanted = replace(self.blank, places=state.places, weights=state.weights, previous=previous, number=self.number)
        if self.algorithm.variant.centers == "norm-max":
            groups = len(state.places) if self.algorithm.per_cluster else 1
            limits = self.passes.total(block_statistics.sketch, wanted).thresholds(self.algorithm.keep, groups)
            wanted = replace(wanted, limits=np.broadcast_to(limits, len(state.places)))
        part = self.passes.total(block_statistics.step, wanted)
        self.previous = state.places
        self.number += 1
        own = part.statistics if isinstance(part.statistics, Statistics) else part.statistics.statistics
        check_cost(own.inertia + own.sums.sum())  # also of the rules that compiled code does not compute
        return Summed(own, wanted.limits, part.moved / part.seen if part.seen else None)

    def m_step(self, state: Centers, expectation: Summed) -> Centers:
        statistics = expectation.statistics
        if not self.algorithm.variant.soft and (statistics.counts <= 0).any():
            statistics = self._refilled(state, expectation)
        places = statistics.centers(state.places.astype(np.float64))
        if self.algorithm.spherical:
            places = on_sphere(places)
        weights = None if state.weights is None else statistics.counts / statistics.counts.sum()
        # as in memory: the lazy engine keeps centres in double precision, the fused one in that of the rows
        return Centers(places if block_statistics.is_plain(self.blank) else places.astype(self.dtype), weights)

    def _refilled(self, state: Centers, expectation: Summed) -> Statistics:
        """The statistics after :func:`iteration.refill_empty`."""
        old = expectation.statistics
        sums, counts = old.sums.copy(), old.counts.copy()
        wanted = int((counts <= 0).sum()) + len(counts)
        far = self.passes.total(
            block_statistics.far_rows,
            replace(self.blank, places=state.places, limits=expectation.limits, wanted=wanted),
        )
        rows = far.rows, far.labels, far.costs
        iteration.refill_empty(self.algorithm, *rows, sums, counts, far.weight, far.counts)
        return Statistics(sums, counts, old.inertia)

    def mean_cost(self, places: np.ndarray) -> float:
        """The mean cost of all rows at their best centres, from which ``gamma="scale"`` is computed."""
        total = self.passes.total(block_statistics.cost, replace(self.blank, places=places))
        return total.inertia / total.counts.sum()

    def run(self, state: Centers, *, max_iter: int, tol: float, on_iteration=None, first: int = 1) -> Result:
        """Iterate from a state, and make one more pass with the final centres. The labels are left empty."""
        self.number = first - 1
        ran = iteration.iterate(self, state, max_iter=max_iter, tol=tol, on_iteration=on_iteration, first=first)
        return self.finished(ran.state, ran.n_iter, ran.converged)

    def finished(self, state: Centers, n_iter: int, converged: bool) -> Result:
        centers = state.places.astype(self.dtype)
        last = self.e_step(Centers(centers, state.weights))
        counts = last.statistics.counts
        if self.algorithm.variant.soft:  # those are sums of shares, which all clusters have
            wanted = replace(self.blank, places=centers, weights=state.weights)
            counts = self.passes.total(block_statistics.members, wanted)
        return Result(
            centers=centers,
            labels=np.empty(0, np.int32),
            inertia=last.objective,
            n_iter=n_iter,
            converged=converged,
            gamma=self.algorithm.gamma,
            weights=state.weights,
            limits=last.limits,
            counts=counts,
        )


def begin(
    passes: Passes, algorithm: Algorithm, centers: np.ndarray, device: str = "cpu", n_threads: int | None = 1
) -> tuple[Algorithm, Centers]:
    """The algorithm with gamma set, and the state before the first iteration."""
    k, d = centers.shape
    if algorithm.gamma is None:
        engine = BlockEngine(passes, algorithm, centers.dtype, device=device, n_threads=n_threads)
        algorithm = algorithm.with_gamma(engine.mean_cost(centers), d)
    return algorithm, Centers(centers, np.full(k, 1.0 / k) if algorithm.mixing_weights else None)


def trimmed_objective(passes: Passes, algorithm: Algorithm, centers: np.ndarray, device: str = "cpu") -> float:
    """The sum of the costs of the rows at their nearest centres, without the share that may be outliers."""
    row = Row(algorithm.row.form, VARIANTS["trimmed"])
    trimmed = replace(algorithm, row=row, keep=1.0 - algorithm.outliers, per_cluster=False)
    return BlockEngine(passes, trimmed, centers.dtype, device=device).e_step(Centers(centers)).objective
