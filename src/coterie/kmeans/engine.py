"""What all engines share: the state that travels between iterations, the loop around it, and when it stops."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from coterie import em
from coterie.kmeans.refill import refill
from coterie.kmeans.result import Result


@dataclass(frozen=True)
class Centers:
    """The state of an iteration: k centres and, for soft k-means with mixing weights, their shares."""

    places: Any  # (k, d)
    weights: Any = None  # (k,)


class Expectation(Protocol):
    """What an E-step hands to the M-step. Engines put more into theirs."""

    @property
    def labels(self) -> Any: ...

    @property
    def objective(self) -> float: ...


class Engine(Protocol):
    """One algorithm on one data set."""

    labels_decide: bool  # equal labels mean equal centres: the loop may stop when they repeat

    def e_step(self, state: Centers) -> Any: ...

    def m_step(self, state: Centers, expectation: Any) -> Centers: ...


def run(
    engine: Engine,
    places: Any,
    *,
    max_iter: int,
    tol: float,
    weights: Any = None,
    on_iteration: Callable[[em.Iteration], Any] | None = None,
) -> tuple[Centers, Any, em.Outcome]:
    """Iterate until the labels repeat, the centres move by no more than ``tol`` in all (squared), or ``max_iter``.

    Returns the final state, an expectation that belongs to it (so that labels equal those of ``predict``), and how the
    loop went. The rules are scikit-learn's.
    """
    previous = None

    def stop(old: Centers, new: Centers, expectation: Any) -> bool:
        nonlocal previous
        repeats = engine.labels_decide and previous is not None and bool((expectation.labels == previous).all())
        previous = expectation.labels
        return repeats or float(((new.places - old.places) ** 2).sum()) <= tol

    ran = em.run(
        Centers(places, weights), engine.e_step, engine.m_step, max_iter=max_iter, stop=stop, on_iteration=on_iteration
    )
    return ran.state, engine.e_step(ran.state), ran


def fill_empty(X, labels, sq_distances, sums, counts, sample_weight) -> None:
    """Refill empty clusters of a family member whose centres are not plain means, in place.

    Only the empty clusters change: far rows become their centres. The clusters that the rows came from keep their
    centres, since those rows hardly counted there.
    """
    empty = counts <= 0
    if not empty.any():
        return
    plain_counts = np.bincount(labels[labels >= 0], sample_weight[labels >= 0], minlength=len(counts))
    plain_sums = np.zeros_like(sums)
    refill(X, labels, sq_distances, plain_sums, plain_counts, sample_weight)
    sums[empty], counts[empty] = plain_sums[empty], plain_counts[empty]


def as_result(state: Centers, expectation: Any, ran: em.Outcome, trajectory: list | None = None) -> Result:
    """The engine's tensors as the arrays that estimators keep."""
    limits = getattr(expectation, "limits", None)
    return Result(
        centers=state.places.cpu().numpy(),
        labels=expectation.labels.cpu().numpy().astype(np.int32),
        inertia=expectation.objective,
        n_iter=ran.n_iter,
        converged=ran.converged,
        weights=None if state.weights is None else state.weights.cpu().numpy(),
        limits=None if limits is None else limits.cpu().numpy(),
        trajectory=trajectory or [],
    )
