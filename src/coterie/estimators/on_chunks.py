"""KMeans on chunks: a fit that reads a file again in every pass, and the incremental ``partial_fit``."""

import os

import numpy as np
from sklearn.utils import check_random_state

from coterie.data.chunks import Chunks
from coterie.estimators.progress import watching
from coterie.estimators.validation import check_enough_rows, check_rows, check_weights
from coterie.kmeans import chunked
from coterie.kmeans.statistics import Statistics


def is_chunked(X) -> bool:
    return isinstance(X, (str, os.PathLike, Chunks))


def fit(model, X, sample_weight):
    """Lloyd's algorithm over the rows of a file (Parquet, NPY) or of ``Chunks``."""
    if sample_weight is not None:
        raise ValueError("Rows of a file have no sample_weight: repeat the rows, or load them and fit the array.")
    if model.algorithm != "lloyd" or model.engine not in ("auto", "lazy"):
        raise ValueError("A file is clustered by algorithm='lloyd' with engine='auto' or 'lazy' only.")
    chunks = X if isinstance(X, Chunks) else Chunks(X)
    rows, times, n = chunked.sample(chunks, model.n_clusters, model._n_threads())
    check_rows(model, rows, reset=True)
    check_enough_rows(n, model.n_clusters)
    random_state, n_init, best = check_random_state(model.random_state), model._n_runs(), None
    tol = model._absolute_tol(rows, times)
    with watching(model, rows, n_init, model.max_iter) as watch:
        for number in range(n_init):
            with watch.run(number) as on_iteration:
                centers = model._start(rows, times, random_state)
                result = chunked.run(
                    chunks,
                    centers,
                    max_iter=model.max_iter,
                    tol=tol,
                    n_threads=model._n_threads(),
                    on_iteration=on_iteration,
                )
            if best is None or result.inertia < best.inertia:
                best = result
        model._keep(best, np.arange(n))
        watch.close(vars(model))
    return model


def partial_fit(model, X, sample_weight):
    """Add a chunk to the running means."""
    first = not hasattr(model, "cluster_centers_")
    X = check_rows(model, X, reset=first)
    weight = check_weights(X, sample_weight)
    if weight is not None:
        X, weight = X[weight > 0], weight[weight > 0]
    if first:
        check_enough_rows(len(X), model.n_clusters)
        model.cluster_centers_ = model._start(X, weight, check_random_state(model.random_state))
        model.n_iter_ = 0
        model._n_features_out = len(model.cluster_centers_)
    before = Statistics(model.sums_, model.counts_) if hasattr(model, "counts_") else None
    centers = np.asarray(model.cluster_centers_, dtype=X.dtype)
    total, model.cluster_centers_, model.labels_ = chunked.update(before, centers, X, weight, model._n_threads())
    model.sums_, model.counts_, model.inertia_ = total.sums, total.counts, total.inertia
    model.n_iter_ += 1
    return model
