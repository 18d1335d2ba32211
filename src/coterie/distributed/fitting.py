"""A fit on blocks of files or of Dask data: the survey, and the block engine with checkpoints."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from coterie import __version__, em
from coterie.distributed.checkpointing import Saved, current, identified
from coterie.distributed.survey import Survey, survey
from coterie.kmeans.algorithm import Algorithm
from coterie.kmeans.block_engine import BlockEngine, Passes, begin
from coterie.kmeans.iteration import Centers, OnIteration, Result

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
    n_threads: int | None = 1,
    on_iteration: OnIteration | None = None,
) -> Result:
    """Perform one run from the next of the starts. The labels of the result are left empty. ``tol`` is absolute.

    The rows are read once in every pass: only one block per process and O(k d) numbers are in memory.

    Inside ``checkpoint(...)`` every iteration is saved; ``parameters`` are those of the estimator, which identify the
    fit together with its rows.
    """
    checkpoint = current()
    problem = {} if checkpoint is None else _problem(algorithm, known, parameters)
    saved = checkpoint.load(problem) if checkpoint is not None else None
    if saved is None:
        begun, state = begin(passes, algorithm, next(starts), device, n_threads)
        saved = Saved(0, state.places, state.weights, begun.gamma)
        if checkpoint is not None:
            checkpoint.save(saved, problem)
    algorithm = replace(algorithm, gamma=saved.gamma)
    watched, dtype = on_iteration is not None, known.sample.rows.dtype
    engine = BlockEngine(passes, algorithm, dtype, watched=watched, device=device, n_threads=n_threads)
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
    """Make the first pass over the data."""
    known = passes.total(survey, n_clusters)
    if known is None:
        raise ValueError("X has no rows of positive weight: every block is empty.")
    if known.rows < n_clusters:
        raise ValueError(
            f"n_samples={known.rows} should be >= n_clusters={n_clusters}: pass more rows or lower n_clusters."
        )
    return known


def _problem(algorithm: Algorithm, known: Survey, parameters: Mapping[str, Any]) -> dict:
    """What identifies the fit of a checkpoint: its rows, parameters and version, but not where and how long it runs."""
    chosen = {name: identified(value) for name, value in parameters.items() if name not in _ONLY_EXECUTION}
    return {
        "version": __version__,
        "algorithm": algorithm.row.name,
        "number of clusters": parameters["n_clusters"],
        "number of columns": len(known.spread.mean_D),
        "number of rows": known.rows,
        "number of blocks": len(known.sizes),
        "type of the numbers": known.sample.rows.dtype.name,
        "fingerprint of the rows": f"{known.fingerprint:016x}",
        **chosen,
        **({"seed of the draws": algorithm.seed} if algorithm.draws else {}),
    }
