"""The center-based estimators on chunks of rows: fits that read a file once per pass, and ``partial_fit``."""

import numpy as np
from sklearn.utils import check_random_state

from coterie.data.chunks import Chunks
from coterie.estimators.progress import watching
from coterie.estimators.validation import check_enough_rows, check_rows, check_weights
from coterie.kmeans import chunked
from coterie.kmeans.iteration import Result
from coterie.kmeans.sphere import on_sphere
from coterie.kmeans.statistics import Statistics


def fit(estimator, X, sample_weight):
    """Fit on the rows of a file (Parquet, NPY) or of ``Chunks``."""
    if sample_weight is not None:
        raise ValueError("Rows of a file have no sample_weight: repeat the rows, or load them and fit the array.")
    estimator._require_plain_fit("A file")
    chunks = X if isinstance(X, Chunks) else Chunks(X)
    algorithm = estimator._algorithm()
    sample = chunked.sample(chunks, estimator.n_clusters, estimator._n_threads())
    check_rows(estimator, sample.rows, reset=True)
    check_enough_rows(sample.n_rows, estimator.n_clusters)
    rows = on_sphere(sample.rows) if algorithm.spherical else sample.rows
    random_state, n_init = check_random_state(estimator.random_state), estimator._n_runs()
    starts = estimator._starts(rows, sample.times, algorithm, random_state, n_init)
    best: Result | None = None
    with watching(estimator, rows, n_init, estimator.max_iter) as watch:
        for number in range(n_init):
            seeded = estimator._seeded(algorithm, random_state)
            with watch.run(number) as on_iteration:
                result = chunked.run(
                    chunks,
                    next(starts),
                    seeded,
                    device=estimator._device(),
                    max_iter=estimator.max_iter,
                    tol=estimator.tol * sample.mean_variance,
                    n_threads=estimator._n_threads(),
                    on_iteration=on_iteration,
                )
            if best is None or result.inertia < best.inertia:
                best = result
        assert best is not None
        estimator._keep(best, np.arange(sample.n_rows))
        watch.close(vars(estimator))
    return estimator


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
        model.cluster_centers_ = next(model._starts(X, weight, model._algorithm(), random_state))
        model.n_iter_ = 0
        model.converged_ = False
        model._n_features_out = len(model.cluster_centers_)
    before = Statistics(model.sums_, model.counts_) if hasattr(model, "counts_") else None
    centers = np.asarray(model.cluster_centers_, dtype=X.dtype)
    total, model.cluster_centers_, model.labels_ = chunked.update(before, centers, X, weight, model._n_threads())
    model.sums_, model.counts_, model.inertia_ = total.sums, total.counts, total.inertia
    model.n_clusters_ = int(np.count_nonzero(total.counts))
    model.n_iter_ += 1
    return model
