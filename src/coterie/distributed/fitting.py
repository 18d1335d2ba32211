"""A fit on blocks of files or of Dask data: the survey, and the block engine with checkpoints.

The survey is the first pass. It returns what a fit needs to know, and a sample that starts are made from.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from coterie import __version__, em
from coterie.distributed.checkpointing import Saved, current, identified
from coterie.geometry.spread import Spread
from coterie.kmeans.algorithm import Algorithm
from coterie.kmeans.block_engine import BlockEngine, Passes, begin
from coterie.kmeans.block_statistics import Block
from coterie.kmeans.iteration import Centers, OnIteration, Result
from coterie.kmeans.scaling import largest_value, scaled
from coterie.starts.row_order import fingerprint, hash_rows

SAMPLE = 50_000  # distinct rows that a start is made from, at least
_ONLY_EXECUTION = ("n_clusters", "max_iter", "device", "n_jobs", "verbose")  # n_clusters has a name of its own


@dataclass(frozen=True)
class Sample:
    """The distinct rows with the smallest hashes, in this order, and the weight of all rows that equal each."""

    hashes: np.ndarray
    rows: np.ndarray
    weight: np.ndarray
    wanted: int

    def __add__(self, other: "Sample") -> "Sample":
        hashes = np.concatenate([self.hashes, other.hashes])
        rows, weight = np.concatenate([self.rows, other.rows]), np.concatenate([self.weight, other.weight])
        return _first(hashes, rows, weight, self.wanted)

    @property
    def is_complete(self) -> bool:
        """Whether it has all distinct rows, so that a start from it is the start from all rows."""
        return len(self.hashes) < self.wanted


def _first(hashes: np.ndarray, rows: np.ndarray, weight: np.ndarray, wanted: int) -> Sample:
    if len(hashes) > 4 * wanted:  # a few more than are wanted, unless these are the same rows many times
        some = np.flatnonzero(hashes <= np.partition(hashes, 2 * wanted)[2 * wanted])
        found = _first(hashes[some], rows[some], weight[some], wanted) if len(some) <= 4 * wanted else None
        if found is not None and not found.is_complete:
            return found
    hashes, firsts, group = np.unique(hashes, return_index=True, return_inverse=True)
    weight = np.bincount(group, weights=weight)
    return Sample(hashes[:wanted], rows[firsts[:wanted]], weight[:wanted], wanted)


@dataclass(frozen=True)
class Survey:
    """Size and moments of blocks. The surveys of two sets of blocks can be added."""

    sizes: dict[int, int]  # rows by block
    rows: int  # of positive weight
    spread: Spread
    largest: float  # absolute value
    fingerprint: int  # of all rows and their weights, in any order
    sample: Sample

    def __add__(self, other: "Survey") -> "Survey":
        with np.errstate(over="ignore", invalid="ignore"):  # refused later, by `largest`
            spread = self.spread + other.spread
        sizes = {**self.sizes, **other.sizes}
        largest = max(self.largest, other.largest)
        fingerprint = (self.fingerprint + other.fingerprint) % 2**64
        return Survey(sizes, self.rows + other.rows, spread, largest, fingerprint, self.sample + other.sample)

    def scaled(self, exponent: int) -> "Survey":
        """The survey of the same rows multiplied by 2^exponent."""
        mean, var = np.ldexp(self.spread.mean_D, exponent), np.ldexp(self.spread.var_D, 2 * exponent)
        sample = replace(self.sample, rows=scaled(self.sample.rows, exponent))
        largest = float(np.ldexp(self.largest, exponent))
        return replace(self, spread=Spread(self.spread.size, mean, var), largest=largest, sample=sample)

    @property
    def mean_variance(self) -> float:
        """The mean of the variances of the columns, which ``tol`` is relative to."""
        return float(np.mean(self.spread.var_D))


def survey(block: Block, n_clusters: int) -> Survey:
    """The survey of one block, for a number of clusters."""
    X, weight = block.X, block.weights
    with np.errstate(over="ignore", invalid="ignore"):  # the caller refuses such values
        spread = Spread.of_block(block)
    hashes = hash_rows(X, 1)
    sample = _first(hashes, X, weight, max(SAMPLE, 20 * n_clusters))
    told = fingerprint(hashes, block.weight)
    return Survey({block.number: block.n_rows}, len(X), spread, largest_value(X), told, sample)


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
