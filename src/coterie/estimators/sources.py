"""Where the rows of a fit are: in memory, in chunks or on Dask. A source makes starts, runs and labels."""

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import Any

import numpy as np

from coterie import starts
from coterie.constraints import Constraints
from coterie.estimators.in_blocks import InBlocks, OnDask
from coterie.estimators.validation import check_enough_rows, check_size_of_all, check_sized_rows, check_weights
from coterie.kmeans.algorithm import Algorithm
from coterie.kmeans.iteration import OnIteration, Result, mean_variance
from coterie.kmeans.scaling import (
    check_values,
    exponent_of_size,
    largest_value,
    scaled,
    scaled_algorithm,
    scaled_result,
)
from coterie.kmeans.sphere import on_sphere

CANDIDATES = 4  # starts that are tried on the sample of rows in blocks, if it is only a part of them


class Source(ABC):
    """The rows of one fit of one estimator."""

    X: Any  # as the user gave it, for callbacks
    kept: np.ndarray = np.arange(0)  # which rows of an array took part
    exponent: int = 0  # the fit is one of the rows divided by 2 to this power

    def __init__(self, estimator: Any):
        self.estimator = estimator
        self.algorithm: Algorithm = estimator._algorithm()

    def _scale(self, largest: float, dtype) -> None:
        """Note by what the rows, of this largest absolute value, are divided, and set the algorithm for such rows."""
        self.exponent = exponent_of_size(largest, dtype)
        self.algorithm = scaled_algorithm(self.algorithm, -self.exponent)

    def opened(self) -> AbstractContextManager:
        """A block in which the rows are read."""
        return nullcontext()

    @abstractmethod
    def starts(self, n_runs: int, random_state) -> Iterator[np.ndarray]:
        """The starting centres (k, d) of one run after another."""

    @abstractmethod
    def run(self, starts: Iterator[np.ndarray], algorithm: Algorithm, random_state, on_iteration) -> Result:
        """One run, from the next of the starts."""

    def runs(self, n_runs: int, random_state, watch) -> Iterator[Result]:
        starts = self.starts(n_runs, random_state)
        for number in range(n_runs):
            with watch.run(number) as on_iteration:
                algorithm = self.algorithm
                if algorithm.draws:
                    algorithm = replace(algorithm, seed=int(random_state.randint(2**31 - 1)))
                result = self.run(starts, algorithm, random_state, on_iteration)
            yield result

    @abstractmethod
    def passes(self) -> Any:
        """The same rows as blocks (:class:`coterie.kmeans.block_engine.Passes`)."""

    def criterion(self, result: Result) -> float:
        """What is minimised over the runs: the objective, without the farthest rows where outliers are expected."""
        if not self.algorithm.outliers or result.limits is not None:
            return result.inertia
        from coterie.kmeans.block_engine import trimmed_objective

        return trimmed_objective(self.passes(), self.algorithm, result.centers, self.estimator._device())

    def finished(self, result: Result) -> Result:
        """The result in the units of X."""
        return scaled_result(result, self.exponent)

    def counts(self, result: Result) -> np.ndarray:
        """The total weight of the rows of each cluster."""
        assert result.counts is not None
        return result.counts

    @abstractmethod
    def labels(self, result: Result) -> Any:
        """The labels of all rows. The estimator has the attributes of the result."""


class RowsInMemory(Source):
    """An array or a CSR matrix."""

    def __init__(self, estimator, X, sample_weight, known: Constraints | None = None):
        super().__init__(estimator)
        self.X, largest = check_sized_rows(estimator, X, reset=True, accept_sparse=estimator._takes_sparse)
        weight = check_weights(self.X, sample_weight)
        self.kept = np.arange(self.X.shape[0]) if weight is None else np.flatnonzero(weight)
        check_enough_rows(len(self.kept), estimator.n_clusters)
        self.all_rows = on_sphere(self.X) if self.algorithm.spherical else self.X
        if self.algorithm.variant.sized:
            self._check_sizes(sample_weight, known)
        rows = self.all_rows
        if weight is not None and len(self.kept) < rows.shape[0]:
            rows, weight = rows[self.kept], weight[self.kept]
        self.weight = weight
        self._scale(largest if rows is self.X else largest_value(rows), rows.dtype)
        self.rows = scaled(rows, -self.exponent)
        self.known = known
        if known is not None:
            self.algorithm = replace(self.algorithm, constraints=known.take(self.kept))
        tol = getattr(estimator, "tol", 0.0)
        self.tol = tol * mean_variance(self.rows, weight) if tol else 0.0

    def _check_sizes(self, sample_weight, known: Constraints | None) -> None:
        """Raise ValueError before the fit if the sizes are impossible, or bound with what they do not go with."""
        self.algorithm.check_sizes(len(self.kept), self.estimator.n_clusters)
        if sample_weight is not None:
            raise ValueError("sizes count rows, which have no sample_weight: repeat the rows, or fit without sizes.")
        if known is not None:
            raise ValueError("sizes do not go with y, must_link and cannot_link: leave one of them out.")
        if getattr(self.estimator, "engine", "auto") == "lazy":
            raise ValueError("engine='lazy' knows no sizes: use engine='auto'.")

    def starts(self, n_runs, random_state):
        return starts_in_memory(
            self.estimator, self.rows, self.weight, self.algorithm, random_state, n_runs, self.exponent
        )

    def runs(self, n_runs, random_state, watch):
        """Unobserved runs on a table of moderate size are performed as one batch."""
        from coterie.kmeans import engines

        one = self.estimator
        free = watch.silent and getattr(one, "engine", "auto") == "auto"
        if not (free and engines.in_one_call(self.rows, one.n_clusters, self.algorithm, one._device())):
            return super().runs(n_runs, random_state, watch)
        loop = {"sample_weight": self.weight, "max_iter": one.max_iter, "tol": self.tol, "n_threads": one._n_threads()}
        starts = list(self.starts(n_runs, random_state))
        return iter(engines.run_in_one_call(self.rows, starts, self.algorithm, **loop))

    def run(self, starts, algorithm, random_state, on_iteration: OnIteration | None):
        run = self.estimator._run
        return run(self.rows, next(starts), self.weight, algorithm, self.tol, random_state, on_iteration)

    def passes(self):
        from coterie.kmeans.block_statistics import ChunkPasses

        return ChunkPasses([self.rows], self.weight)

    def counts(self, result):
        return np.bincount(result.labels, self.weight, minlength=len(result.centers)).astype(np.float64)

    def labels(self, result):
        if len(self.kept) == self.X.shape[0]:
            return result.labels
        labels = self.estimator._labels(self.all_rows)
        if self.known is not None:
            labels[self.kept] = result.labels
            labels = self.known.completed(labels, self.kept)
        return labels


class RowsInBlocks(Source):
    """Rows of files or of Dask data. Starts are made from a sample of them."""

    def __init__(self, estimator, rows: InBlocks, sample_weight=None):
        super().__init__(estimator)
        if sample_weight is not None and not isinstance(rows, OnDask):
            raise ValueError("Rows of a file have no sample_weight: repeat the rows, or load them and fit the array.")
        estimator._require_plain_fit("Data in blocks")
        rows.check(estimator, reset=True)
        self.in_blocks, self.X = rows, rows.given
        self.parameters = {name: copy.deepcopy(value) for name, value in estimator.get_params(deep=False).items()}

    @contextmanager
    def opened(self):
        from coterie.distributed import fitting

        one = self.estimator
        with self.in_blocks.opened(self.algorithm.spherical) as self._passes:
            known = fitting.look(self._passes, one.n_clusters)
            rows = known.sample.rows
            check_size_of_all(known.largest, rows.dtype, known.rows, rows.shape[1])
            self._scale(1.0 if self.algorithm.spherical else known.largest, rows.dtype)
            self._passes.exponent = self.exponent
            self.known = known.scaled(-self.exponent)
            yield

    def passes(self):
        return self._passes

    def starts(self, n_runs, random_state):
        one, sample, algorithm = self.estimator, self.known.sample, self.algorithm
        as_in_memory = sample.is_complete or not isinstance(one.init, str) or one.init == "random"
        n_each = 1 if as_in_memory else CANDIDATES
        made = starts_in_memory(
            one, sample.rows, sample.weight, algorithm, random_state, n_runs * n_each, self.exponent
        )
        if as_in_memory:
            yield from made
            return
        from coterie.kmeans import engines

        how = {"sample_weight": sample.weight, "max_iter": 20, "n_threads": one._n_threads(), "device": one._device()}
        for _ in range(n_runs):
            tried = [engines.run(sample.rows, next(made), algorithm, **how) for _ in range(n_each)]
            yield min(tried, key=lambda run: run.inertia).centers

    def runs(self, n_runs, random_state, watch):
        from coterie.distributed import checkpointing

        if n_runs > 1 and checkpointing.current() is not None:
            raise ValueError("A checkpoint holds one run: set n_init=1, or fit outside coterie.distributed.checkpoint.")
        return super().runs(n_runs, random_state, watch)

    def run(self, starts, algorithm, random_state, on_iteration):
        from coterie.distributed import fitting

        one = self.estimator
        return fitting.run(
            self._passes,
            starts,
            algorithm,
            self.known,
            parameters=self.parameters,
            device=one._device(),
            n_threads=1 if isinstance(self.in_blocks, OnDask) else one._n_threads(),
            max_iter=one.max_iter,
            tol=one.tol * self.known.mean_variance,
            on_iteration=on_iteration,
        )

    def labels(self, result):
        return self.estimator.predict(self.in_blocks)


def starts_in_memory(
    estimator, X, weight, algorithm: Algorithm, random_state, n_runs: int = 1, exponent: int = 0
) -> Iterator[np.ndarray]:
    """The starting centres of each run for X, which was divided by 2^exponent."""
    init, k = estimator.init, estimator.n_clusters
    chosen: Any = init
    if callable(init):

        def rescaled(X, n_clusters, random_state):
            return scaled(np.asarray(init(scaled(X, exponent), n_clusters, random_state=random_state)), -exponent)

        chosen = rescaled
    elif not isinstance(init, str):
        chosen = starts.checked(init, k, X.shape[1], X.dtype)
        try:
            check_values(chosen, lambda row, column: f"row {row}, column {column}")
        except ValueError as error:
            raise ValueError(f"init {error}") from None
        chosen = scaled(chosen, -exponent)
    found = starts.several(X, k, chosen, random_state, n_runs, weight, estimator._n_threads(), algorithm.outliers)
    if getattr(estimator, "algorithm", "") == "learned":
        from coterie.kmeans import learned

        found = (learned.improved_start(X, centers, weight, estimator._device()) for centers in found)
    return (on_sphere(centers) for centers in found) if algorithm.spherical else found
