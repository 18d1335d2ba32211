"""The center-based estimators on chunks of rows: fits that read a file once per pass, and ``partial_fit``."""

import numpy as np
from sklearn.utils import check_random_state

from coterie.distributed.chunks import Chunks
from coterie.estimators.sources import Source, starts_in_memory
from coterie.estimators.validation import check_enough_rows, check_rows, check_size_of_all, check_weights
from coterie.kmeans import chunked
from coterie.kmeans.scaling import exponent_of, scaled
from coterie.kmeans.statistics import Statistics


class ChunkedRows(Source):
    """The rows of a file (Parquet, NPY) or of ``Chunks``."""

    def __init__(self, estimator, X, sample_weight):
        super().__init__(estimator)
        if sample_weight is not None:
            raise ValueError("Rows of a file have no sample_weight: repeat the rows, or load them and fit the array.")
        estimator._require_plain_fit("A file")
        self.chunks = X if isinstance(X, Chunks) else Chunks(X)
        spherical = self.algorithm.spherical
        self.sample = chunked.sample(self.chunks, estimator.n_clusters, estimator._n_threads(), spherical)
        self.X = check_rows(estimator, self.sample.rows, reset=True)
        check_enough_rows(self.sample.n_rows, estimator.n_clusters)
        largest, dtype = self.sample.largest, self.X.dtype
        check_size_of_all(largest, dtype, self.sample.n_rows, self.X.shape[1])
        self._scale(1.0 if spherical else largest, dtype)

    def starts(self, n_runs, random_state):
        rows, times = scaled(self.X, -self.exponent), self.sample.times
        return starts_in_memory(self.estimator, rows, times, self.algorithm, random_state, n_runs, self.exponent)

    def run(self, starts, algorithm, random_state, on_iteration):
        one = self.estimator
        tol = one.tol * float(np.ldexp(self.sample.mean_variance, -2 * self.exponent))
        loop = {"max_iter": one.max_iter, "tol": tol, "on_iteration": on_iteration}
        return chunked.run(self.passes(), next(starts), algorithm, one._device(), one._n_threads(), **loop)

    def passes(self):
        return chunked.ChunkPasses(self.chunks, spherical=self.algorithm.spherical, exponent=self.exponent)

    def labels(self, result):
        blocks = chunked.ChunkPasses(self.chunks, spherical=self.algorithm.spherical).blocks()
        return np.concatenate([self.estimator._labels(block.X) for block in blocks])


def partial_fit(model, X, sample_weight):
    """Add a chunk to the running means."""
    first = not hasattr(model, "cluster_centers_")
    X = check_rows(model, X, reset=first)
    weight = check_weights(X, sample_weight)
    if weight is not None:
        X, weight = X[weight > 0], weight[weight > 0]
    if first:
        check_enough_rows(len(X), model.n_clusters)
        random_state = check_random_state(model.random_state)
        model.cluster_centers_ = next(starts_in_memory(model, X, weight, model._algorithm(), random_state))
        model.n_iter_ = 0
        model.converged_ = False
        model._n_features_out = len(model.cluster_centers_)
    centers = np.asarray(model.cluster_centers_, dtype=X.dtype)
    counts = getattr(model, "counts_", np.zeros(len(centers)))
    sums = getattr(model, "sums_", counts[:, None] * centers.astype(np.float64))
    exponent = exponent_of(X, centers)
    before = Statistics(scaled(sums, -exponent), counts)
    X, centers = scaled(X, -exponent), scaled(centers, -exponent)
    total, centers, model.labels_ = chunked.update(before, centers, X, weight, model._n_threads())
    model.cluster_centers_, model.sums_ = scaled(centers, exponent), scaled(total.sums, exponent)
    model.counts_, model.inertia_ = total.counts, float(np.ldexp(total.inertia, 2 * exponent))
    model.n_clusters_ = int(np.count_nonzero(total.counts))
    model.n_iter_ += 1
    return model
