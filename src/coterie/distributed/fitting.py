"""A fit on Dask blocks: the survey, the start, and the block engine with checkpoints."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from coterie import __version__, em, starts
from coterie.distributed import dask_starts
from coterie.distributed.blocks import Layout
from coterie.distributed.checkpointing import Saved, current, identified
from coterie.distributed.passes import Passes
from coterie.distributed.survey import Survey, survey
from coterie.kmeans.algorithm import Algorithm
from coterie.kmeans.block_engine import BlockEngine, begin
from coterie.kmeans.iteration import Centers, OnIteration, Result
from coterie.kmeans.scaling import scaled

_ONLY_EXECUTION = ("n_clusters", "max_iter", "device", "n_jobs", "verbose")  # n_clusters has a name of its own


def run(
    passes: Passes,
    starts: Iterator[np.ndarray],
    algorithm: Algorithm,
    known: Survey,
    *,
    parameters: Mapping[str, Any],
    max_iter: int,
    tol: float,
    device: str = "cpu",
    on_iteration: OnIteration | None = None,
) -> Result:
    """Perform one run from the next of the starts. The labels of the result are left empty. ``tol`` is absolute.

    Inside ``checkpoint(...)`` every iteration is saved; ``parameters`` are those of the estimator, which identify the
    fit together with its rows.
    """
    checkpoint, layout = current(), passes.layout
    problem = {} if checkpoint is None else _problem(layout, algorithm, known, parameters)
    saved = checkpoint.load(problem) if checkpoint is not None else None
    if saved is None:
        begun, state = begin(passes, algorithm, next(starts), device)
        saved = Saved(0, state.places, state.weights, begun.gamma)
        if checkpoint is not None:
            checkpoint.save(saved, problem)
    algorithm = replace(algorithm, gamma=saved.gamma)
    engine = BlockEngine(passes, algorithm, layout.dtype, watched=on_iteration is not None, device=device)
    if saved.done:
        return engine.finished(Centers(saved.places, saved.weights), saved.number, True)

    def after(done: em.Iteration) -> Any:
        if checkpoint is not None:
            state: Centers = done.state
            checkpoint.save(Saved(done.number, state.places, state.weights, saved.gamma, done.converged), problem)
        return on_iteration(done) if on_iteration is not None else False

    return engine.run(
        Centers(saved.places, saved.weights), max_iter=max_iter, tol=tol, on_iteration=after, first=saved.number + 1
    )


def look(passes: Passes, n_clusters: int) -> Survey:
    """Make the first pass over the data and validate it."""
    known = passes.total(survey, None, check=True)
    if known is None:
        raise ValueError("X has no rows of positive weight: every block is empty.")
    if known.rows < n_clusters:
        raise ValueError(
            f"n_samples={known.rows} should be >= n_clusters={n_clusters}: pass more rows or lower n_clusters."
        )
    return known


def first_centers(
    passes: Passes, n_clusters: int, init, rng: np.random.RandomState, known: Survey, algorithm: Algorithm
) -> np.ndarray:
    """The starting centres (k, d) in the dtype of the data. Rows are repeated if there are fewer distinct ones."""
    layout = passes.layout
    if not isinstance(init, str):
        given = starts.checked(np.asarray(init), n_clusters, layout.n_features, layout.dtype)
        centers = scaled(given, -layout.exponent)
    elif init == "k-means++":
        centers = dask_starts.parallel(passes, n_clusters, rng, known, algorithm.outliers)
    elif init == "random":
        centers = dask_starts.random_rows(passes, n_clusters, rng, known)
    else:
        raise ValueError(
            f"init={init!r} needs all rows in memory: on Dask data use 'k-means++' (which runs as k-means‖), "
            "'random' or an array."
        )
    return np.ascontiguousarray(np.resize(centers, (n_clusters, layout.n_features)), dtype=layout.dtype)


def _problem(layout: Layout, algorithm: Algorithm, known: Survey, parameters: Mapping[str, Any]) -> dict:
    """What identifies the fit of a checkpoint: its rows, parameters and version, but not where and how long it runs."""
    chosen = {name: identified(value) for name, value in parameters.items() if name not in _ONLY_EXECUTION}
    return {
        "version": __version__,
        "algorithm": algorithm.row.name,
        "number of clusters": parameters["n_clusters"],
        "number of columns": layout.n_features,
        "number of rows": known.rows,
        "number of blocks": layout.n_blocks,
        "type of the numbers": layout.dtype,
        "fingerprint of the rows": f"{known.fingerprint:016x}",
        **chosen,
        **({"seed of the draws": algorithm.seed} if algorithm.draws else {}),
    }
