"""The loop on blocks: every iteration is one pass (two with trimming), every answer that of the engines in memory."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie import em, starts
from coterie.distributed import block_statistics, parallel_start
from coterie.distributed.block_statistics import Plan, Step
from coterie.distributed.blocks import Blocks, on_sphere
from coterie.distributed.checkpointing import Checkpoint, Saved, current
from coterie.distributed.passes import Passes
from coterie.distributed.survey import Survey, survey
from coterie.kmeans.engine import Centers
from coterie.kmeans.refill import refill
from coterie.kmeans.result import Result
from coterie.kmeans.statistics import Statistics


@dataclass(frozen=True)
class Summed:
    """The E-step's outcome over all blocks. Labels stay where the rows are."""

    statistics: Statistics
    limits: np.ndarray | None
    moved: float | None  # share of the rows that moved, from a sample of every block; None if nobody asked

    labels = None

    @property
    def objective(self) -> float:
        return self.statistics.inertia


@dataclass(frozen=True)
class Fit:
    """A finished run: the result, the inverse temperature that it used, and the blocks' sizes."""

    result: Result
    gamma: float
    sizes: tuple[int, ...]


class BlockEngine:
    """One member of the family on one set of blocks."""

    def __init__(self, passes: Passes, plan: Plan, watched: bool):
        self.passes, self.plan, self.watched = passes, plan, watched
        self.previous: np.ndarray | None = None

    def e_step(self, state: Centers) -> Summed:
        wanted = Step(self.plan, state.places, state.weights, previous=self.previous if self.watched else None)
        limits = None
        if self.plan.variant == "trimmed":
            limits = self.limits(wanted)
            wanted = Step(self.plan, state.places, limits=limits, previous=wanted.previous)
        part = self.passes.total(block_statistics.step, wanted)
        self.previous = state.places
        own = part.statistics if isinstance(part.statistics, Statistics) else part.statistics.statistics
        return Summed(own, limits, part.moved.moved / part.moved.rows if part.moved.rows else None)

    def limits(self, wanted: Step) -> np.ndarray:
        k = len(wanted.places)
        sketch = self.passes.total(block_statistics.sketch, wanted)
        found = sketch.thresholds(self.plan.keep, k if self.plan.per_cluster else 1)
        return found if self.plan.per_cluster else np.repeat(found, k)

    def m_step(self, state: Centers, expectation: Summed) -> Centers:
        statistics = expectation.statistics
        if self.plan.variant != "soft" and (statistics.counts <= 0).any():
            statistics = self.refilled(state, expectation)
        places = statistics.centers(state.places.astype(np.float64))
        if self.plan.spherical:
            places = on_sphere(places)
        weights = None if state.weights is None else statistics.counts / statistics.counts.sum()
        # as in memory: the compiled engine keeps centres in double precision, the fused one in that of the rows
        return Centers(
            places if block_statistics.is_plain(self.plan) else places.astype(self.passes.layout.dtype), weights
        )

    def refilled(self, state: Centers, expectation: Summed) -> Statistics:
        """Empty clusters take over the rows farthest from their centres, by the rule of ``kmeans.refill``."""
        old = expectation.statistics
        sums, counts = old.sums.copy(), old.counts.copy()
        empty = counts <= 0
        wanted = int(empty.sum()) + len(counts)
        step = Step(self.plan, state.places, limits=expectation.limits, wanted=wanted)
        far = self.passes.total(block_statistics.far_rows, step)
        if self.plan.variant == "lloyd":
            refill(far.rows, far.labels, far.costs, sums, counts, far.weight)
        else:  # as engine.fill_empty: only the empty clusters change
            plain_sums, plain_counts = np.zeros_like(sums), far.counts.copy()
            refill(far.rows, far.labels, far.costs, plain_sums, plain_counts, far.weight)
            sums[empty], counts[empty] = plain_sums[empty], plain_counts[empty]
        return Statistics(sums, counts, old.inertia)


def fit(
    blocks: Blocks,
    plan: Plan,
    n_clusters: int,
    init: Any,
    rng: np.random.RandomState,
    *,
    max_iter: int,
    tol: float,
    known: Survey | None = None,
    on_iteration: Callable[[em.Iteration], Any] | None = None,
) -> Fit:
    """One run from one start. ``init``: "k-means++", "random", or an array (n_clusters, d). ``tol`` is relative to the
    mean variance of the columns. Inside ``checkpoint(...)`` every iteration is saved."""
    passes = Passes(blocks)
    known = look(passes, n_clusters) if known is None else known
    saving = current()
    problem = _problem(blocks, plan, n_clusters, known)
    saved = saving.load(problem) if saving is not None else None
    if saved is None:
        places = first_centers(passes, plan, n_clusters, init, rng, known)
        plan = plan if plan.gamma is not None else plan.with_gamma(_scaled_gamma(passes, plan, places))
        weights = np.full(n_clusters, 1.0 / n_clusters) if plan.mixing_weights else None
        assert plan.gamma is not None
        saved = Saved(0, places, weights, plan.gamma)
        if saving is not None:
            saving.save(saved, problem)
    plan = plan.with_gamma(saved.gamma)
    engine = BlockEngine(passes, plan, watched=on_iteration is not None)
    limit = tol * known.mean_variance if tol else 0.0
    ran = _loop(engine, saved, max_iter, limit, saving, problem, on_iteration)
    centers = ran.state.places.astype(blocks.layout.dtype)
    last = engine.e_step(Centers(centers, ran.state.weights))
    result = Result(
        centers=centers,
        labels=np.empty(0, np.int32),  # they stay lazy
        inertia=last.objective,
        n_iter=ran.n_iter,
        converged=ran.converged,
        weights=ran.state.weights,
        limits=last.limits,
    )
    return Fit(result, saved.gamma, tuple(known.sizes.get(b, 0) for b in range(blocks.layout.n_blocks)))


def _loop(engine: BlockEngine, saved: Saved, max_iter, limit, saving: Checkpoint | None, problem, on_iteration):
    state = Centers(saved.places, saved.weights)
    if saved.done:
        return em.Outcome(state, None, saved.number, True)

    stopped = False

    # Equal labels give equal sums, bit for bit, so centres stand still when labels repeat: one rule is enough.
    def stop(old: Centers, new: Centers, expectation: Summed) -> bool:
        nonlocal stopped
        stopped = float(((new.places.astype(np.float64) - old.places) ** 2).sum()) <= limit
        return stopped

    def after(done: em.Iteration) -> Any:
        if saving is not None:
            saving.save(Saved(done.number, done.state.places, done.state.weights, saved.gamma, stopped), problem)
        return on_iteration(done) if on_iteration is not None else False

    return em.run(
        state, engine.e_step, engine.m_step, max_iter=max_iter, stop=stop, on_iteration=after, first=saved.number + 1
    )


def look(passes: Passes, n_clusters: int) -> Survey:
    """The first pass over the data, and what must hold of it."""
    known = passes.total(survey, n_clusters, check=True)
    if known is None:
        raise ValueError("X has no rows of positive weight: every block is empty.")
    if known.rows < n_clusters:
        raise ValueError(
            f"n_samples={known.rows} should be >= n_clusters={n_clusters}: give more rows or fewer clusters."
        )
    if len(known.hashes) < n_clusters:
        raise ValueError(
            f"n_clusters={n_clusters} needs at least that many distinct rows, but X has only {len(known.hashes)}: "
            f"set n_clusters to {len(known.hashes)} or less."
        )
    return known


def first_centers(passes: Passes, plan: Plan, n_clusters: int, init, rng, known: Survey) -> np.ndarray:
    """(k, d) in the dtype of the data."""
    layout = passes.layout
    if isinstance(init, str):
        if init == "k-means++":
            centers = parallel_start.parallel(passes, n_clusters, rng, known, plan.trim_start)
        elif init == "random":
            centers = parallel_start.random_rows(passes, n_clusters, rng)
        else:
            raise ValueError(
                f"init={init!r} needs all rows in memory; with Dask data use 'k-means++' (run as k-means‖), 'random' "
                "or an array."
            )
    else:
        centers = starts.checked(np.asarray(init), n_clusters, layout.n_features, layout.dtype)
    centers = np.ascontiguousarray(centers, dtype=layout.dtype)
    return on_sphere(centers) if plan.spherical else centers


def _scaled_gamma(passes: Passes, plan: Plan, places: np.ndarray) -> float:
    total = passes.total(block_statistics.cost, Step(plan.with_gamma(1.0), places))
    mean = total.inertia / total.counts.sum()
    return plan.gamma_scale / mean if mean > 0 else 1.0


def _problem(blocks: Blocks, plan: Plan, n_clusters: int, known: Survey) -> dict:
    """What a checkpoint belongs to."""
    return {
        "variant": plan.variant,
        "number of clusters": n_clusters,
        "number of columns": blocks.layout.n_features,
        "number of rows": known.rows,
        "number of blocks": blocks.layout.n_blocks,
        "total weight": known.weight,
        "mean of the columns": [float(f"{value:.9g}") for value in known.mean],
        "spherical": plan.spherical,
        "keep": plan.keep,
        "per_cluster": plan.per_cluster,
        "gamma": plan.gamma,
        "top": plan.top,
        "mixing_weights": plan.mixing_weights,
    }
