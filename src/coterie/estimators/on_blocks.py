"""The center-based estimators on rows in blocks: files that are read once per pass, and Dask data."""

import copy
from contextlib import contextmanager

from coterie.estimators.in_blocks import InBlocks, OnDask
from coterie.estimators.sources import Source, starts_in_memory
from coterie.estimators.validation import check_size_of_all

CANDIDATES = 4  # starts that are tried on the sample, if it is only a part of the rows


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
