"""``partial_fit``: the running means of chunks that are given one after another."""

import numpy as np
from sklearn.utils import check_random_state

from coterie.estimators.sources import starts_in_memory
from coterie.estimators.validation import check_enough_rows, check_rows, check_weights
from coterie.kmeans import chunked
from coterie.kmeans.scaling import exponent_of, scaled
from coterie.kmeans.statistics import Statistics


def partial_fit(model, X, sample_weight):
    """Add a chunk to the running means."""
    if model._algorithm().variant.sized:
        raise ValueError("partial_fit knows no sizes: fit all rows at once, or set sizes=None.")
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
