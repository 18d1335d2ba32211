"""What all engines share: the state between iterations, the loop, the stopping rule and the result."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from scipy import sparse
from sklearn.utils.sparsefuncs import mean_variance_axis

from coterie import em
from coterie.geometry.spread import Spread
from coterie.kmeans.refill import refill

OnIteration = Callable[[em.Iteration], Any]

_ROWS = 65_536  # rows of a table whose variance numpy computes with a copy in double precision


@dataclass(frozen=True)
class Centers:
    """The state of an iteration: k centres and, if they are estimated, the mixing weights of the clusters."""

    places: Any  # (k, d)
    weights: Any = None  # (k,)


class Engine(Protocol):
    """One algorithm on one data set.

    An E-step returns ``labels`` (None if the engine keeps none), ``objective``, ``moved`` (the share of the rows whose
    label differs from the previous E-step, None if it is not known), and what the M-step needs.
    """

    labels_decide: bool  # whether equal labels mean equal centres: the loop may stop when no label changes

    def e_step(self, state: Centers) -> Any: ...

    def m_step(self, state: Centers, expectation: Any) -> Centers: ...


@dataclass(frozen=True)
class Result:
    """The result of one run.

    ``labels`` belong to the *final* centres: there is one more assignment after the last update, so that
    ``fit(X).labels_`` equals ``fit(X).predict(X)``.
    """

    centers: np.ndarray  # (k, d)
    labels: np.ndarray  # (n,) int32, -1 for a trimmed point
    inertia: float
    n_iter: int
    converged: bool = True
    gamma: float | None = None  # the inverse temperature that was used
    weights: np.ndarray | None = None  # (k,) mixing weights, where they are estimated
    limits: np.ndarray | None = None  # (k,) the largest cost that trimming kept
    prices: np.ndarray | None = None  # (k,) of the centres, where sizes are bounded
    medoids: np.ndarray | None = None  # (k,) which rows the centres are, where they are rows
    trajectory: list = field(default_factory=list)  # (centers, assignments) per layer, where an engine keeps them
    engine: str | None = None  # what computed it, for people
    counts: np.ndarray | None = None  # (k,) total weight of the clusters, where there are no labels to tell

    @property
    def n_clusters(self) -> int:
        """The number of clusters that have points."""
        if self.counts is not None:
            return int(np.count_nonzero(self.counts))
        return len(np.unique(self.labels[self.labels >= 0]))


def iterate(
    engine: Engine,
    state: Centers,
    *,
    max_iter: int,
    tol: float,
    on_iteration: OnIteration | None = None,
    first: int = 1,
) -> em.Outcome:
    """Alternate E- and M-steps until a run has :func:`settled`, or ``max_iter`` is reached."""

    def stop(old: Centers, new: Centers, expectation: Any) -> bool:
        moved = not engine.labels_decide or expectation.moved != 0
        return bool(settled(sq_moves(old.places, new.places), moved, tol))

    steps = (engine.e_step, engine.m_step)
    return em.run(state, *steps, max_iter=max_iter, stop=stop, on_iteration=on_iteration, first=first)


def settled(sq_moves, moved, tol: float):
    """Whether a run stops: no label changed, or the sum of the squared moves of the centres is at most ``tol``.

    The rules are those of scikit-learn. The arguments are numbers, or arrays for several runs at once.
    """
    return (sq_moves <= tol) | (moved == 0)


def sq_moves(old, new):
    """The sum of the squared moves of centres (k, d), or of each run of centres (runs, k, d)."""
    return ((new - old) ** 2).sum((-2, -1))


def mean_variance(X, sample_weight=None) -> float:
    """The mean of the weighted variances of the columns of an array or CSR matrix, to which ``tol`` is relative."""
    if sparse.issparse(X):
        weights = None if sample_weight is None else sample_weight.astype(X.dtype)  # scikit-learn mixes no dtypes
        return float(np.mean(mean_variance_axis(X, axis=0, weights=weights)[1]))
    if sample_weight is None and len(X) <= _ROWS:
        return float(np.mean(np.var(X, axis=0, dtype=np.float64)))
    return float(np.mean(Spread.of(X, sample_weight).var_D))


def refill_empty(algorithm, X, labels, costs, sums, counts, sample_weight, totals=None) -> None:
    """Fill empty clusters in place, by the rule of :func:`coterie.kmeans.refill.refill`.

    ``totals`` are the weights (k,) of the clusters if X holds only some of their rows. If centres are not plain means,
    only the empty clusters change: distant rows become their centres. The clusters of these rows keep their centres,
    since such rows had little weight in them.
    """
    if algorithm.hard_means:
        refill(X, labels, costs, sums, counts, sample_weight)
        return
    empty = counts <= 0
    members = labels >= 0
    if totals is None:
        totals = np.bincount(labels[members], sample_weight[members], minlength=len(counts))
    plain_counts = totals.copy()
    plain_sums = np.zeros_like(sums)
    refill(X, labels, costs, plain_sums, plain_counts, sample_weight)
    sums[empty], counts[empty] = plain_sums[empty], plain_counts[empty]
