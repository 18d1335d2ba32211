"""A fit on Dask blocks: the survey, the start, and the block engine with checkpoints."""

from dataclasses import fields, replace
from typing import Any

import numpy as np

from coterie import em, starts
from coterie.distributed import parallel_start
from coterie.distributed.blocks import Blocks
from coterie.distributed.checkpointing import Saved, current
from coterie.distributed.passes import Passes
from coterie.distributed.survey import Survey, survey
from coterie.kmeans.algorithm import Algorithm
from coterie.kmeans.block_engine import BlockEngine, start_state
from coterie.kmeans.iteration import Centers, OnIteration, Result
from coterie.kmeans.sphere import on_sphere


def fit(
    blocks: Blocks,
    algorithm: Algorithm,
    n_clusters: int,
    init: Any,
    rng: np.random.RandomState,
    *,
    max_iter: int,
    tol: float,
    device: str = "cpu",
    known: Survey | None = None,
    on_iteration: OnIteration | None = None,
) -> Result:
    """Perform one run from one start. The labels of the result are left empty.

    ``init`` is "k-means++", "random" or an array (n_clusters, d). ``tol`` is relative to the mean variance of the
    columns. Inside ``checkpoint(...)`` every iteration is saved.
    """
    passes = Passes(blocks)
    known = look(passes, n_clusters) if known is None else known
    checkpoint = current()
    problem = _problem(blocks, algorithm, n_clusters, known)
    dtype = blocks.layout.dtype
    saved = checkpoint.load(problem) if checkpoint is not None else None
    if saved is None:
        places = first_centers(passes, algorithm, n_clusters, init, rng, known)
        if algorithm.gamma is None:
            mean_cost = BlockEngine(passes, algorithm, dtype, device=device).mean_cost(places)
            algorithm = algorithm.with_gamma(mean_cost, places.shape[1])
        state = start_state(algorithm, places)
        saved = Saved(0, state.places, state.weights, algorithm.gamma)
        if checkpoint is not None:
            checkpoint.save(saved, problem)
    algorithm = replace(algorithm, gamma=saved.gamma)
    engine = BlockEngine(passes, algorithm, dtype, watched=on_iteration is not None, device=device)
    if saved.done:
        return engine.finished(Centers(saved.places, saved.weights), saved.number, True)

    def after(done: em.Iteration) -> Any:
        if checkpoint is not None:
            state: Centers = done.state
            checkpoint.save(Saved(done.number, state.places, state.weights, saved.gamma, done.converged), problem)
        return on_iteration(done) if on_iteration is not None else False

    limit = tol * known.mean_variance if tol else 0.0
    return engine.run(
        Centers(saved.places, saved.weights), max_iter=max_iter, tol=limit, on_iteration=after, first=saved.number + 1
    )


def look(passes: Passes, n_clusters: int) -> Survey:
    """Make the first pass over the data and validate it."""
    known = passes.total(survey, n_clusters, check=True)
    if known is None:
        raise ValueError("X has no rows of positive weight: every block is empty.")
    if known.rows < n_clusters:
        raise ValueError(
            f"n_samples={known.rows} should be >= n_clusters={n_clusters}: pass more rows or lower n_clusters."
        )
    if len(known.hashes) < n_clusters:
        raise ValueError(
            f"n_clusters={n_clusters} requires at least that many distinct rows, but X has only {len(known.hashes)}: "
            f"set n_clusters to {len(known.hashes)} or less."
        )
    return known


def first_centers(
    passes: Passes, algorithm: Algorithm, n_clusters: int, init, rng: np.random.RandomState, known: Survey
) -> np.ndarray:
    """The starting centres (k, d) in the dtype of the data."""
    layout = passes.layout
    if not isinstance(init, str):
        centers = starts.checked(np.asarray(init), n_clusters, layout.n_features, layout.dtype)
    elif init == "k-means++":
        centers = parallel_start.parallel(passes, n_clusters, rng, known, algorithm.outliers)
    elif init == "random":
        centers = parallel_start.random_rows(passes, n_clusters, rng, known)
    else:
        raise ValueError(
            f"init={init!r} needs all rows in memory: on Dask data use 'k-means++' (which runs as k-means‖), "
            "'random' or an array."
        )
    centers = np.ascontiguousarray(centers, dtype=layout.dtype)
    return on_sphere(centers) if algorithm.spherical else centers


def _problem(blocks: Blocks, algorithm: Algorithm, n_clusters: int, known: Survey) -> dict:
    """What identifies the fit of a checkpoint."""
    settings = {field.name: getattr(algorithm, field.name) for field in fields(algorithm) if field.name != "row"}
    return {
        "algorithm": algorithm.row.name,
        "number of clusters": n_clusters,
        "number of columns": blocks.layout.n_features,
        "number of rows": known.rows,
        "number of blocks": blocks.layout.n_blocks,
        "total weight": known.weight,
        "mean of the columns": [float(f"{value:.9g}") for value in known.mean],
        **settings,
    }
