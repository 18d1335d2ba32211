"""k-medoids on squared distances."""

from numbers import Real
from typing import ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from coterie import starts
from coterie.estimators.base import CenterClusterer
from coterie.kmeans import medoids
from coterie.kmeans.result import Result


class KMedoids(CenterClusterer):
    """k-medoids on squared Euclidean distances: every centre is a row of X.

    Parameters
    ----------
    n_clusters : int, default=4
    method : {"annealed", "sampler"}, default="annealed"
        "sampler" is the randomised algorithm of document 002 (Algorithm 6), a random walk that ends where it ends.
        "annealed" raises its inverse temperature from layer to layer, keeps the best medoids and ends with swaps, so
        that no single replacement betters the result.
    gamma : float, default=1.0
        Inverse temperature of the sampler.
    delta : float, default=10.0
        Gap of the sampler: rows of other clusters score 2 delta lower.
    init : {"k-means++", "random", "spectral"}, array or callable
        As for :class:`KMeans`; each starting centre is moved to the nearest row.
    n_init : int or "auto", default="auto"
        Starts to try; the lowest inertia wins.
    max_iter : int, default=100
        Layers of the sampler.
    random_state : int, RandomState or None, default=None
    verbose : int, default=0

    Attributes
    ----------
    medoid_indices_ : array of shape (n_clusters,)
        Which rows of X are the medoids (of equal rows, the first that takes part).
    cluster_centers_ : array of shape (n_clusters, n_features)
        Those rows.
    labels_ : int32 array of shape (n_samples,)
    inertia_ : float
        Weighted sum of squared distances to the nearest medoid.
    n_iter_ : int
    """

    _parameter_constraints: ClassVar[dict] = {
        **CenterClusterer._parameter_constraints,
        "method": [StrOptions({"annealed", "sampler"})],
        "gamma": [Interval(Real, 0, None, closed="neither")],
        "delta": [Interval(Real, 0, None, closed="left")],
    }
    for _name in ("tol", "device", "n_jobs"):
        del _parameter_constraints[_name]

    def __init__(
        self,
        n_clusters=4,
        *,
        method="annealed",
        gamma=1.0,
        delta=10.0,
        init="k-means++",
        n_init="auto",
        max_iter=100,
        random_state=None,
        verbose=0,
    ):
        self.n_clusters = n_clusters
        self.method = method
        self.gamma = gamma
        self.delta = delta
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose

    def _run(self, X, weight, random_state, on_iteration) -> Result:
        starts.require_distinct_rows(X, self.n_clusters)
        rows, first, inverse = np.unique(X, axis=0, return_index=True, return_inverse=True)
        inverse = inverse.reshape(-1)
        weight = np.bincount(inverse, weight).astype(np.float64)
        start = _nearest_rows(rows, self._start(rows, weight, random_state))
        if self.method == "sampler":
            best = medoids.sample(
                rows, weight, start, random_state, self.gamma, self.delta, self.max_iter, on_iteration
            )
        else:
            best = medoids.anneal(rows, weight, start, random_state, self.max_iter, on_iteration)
        return Result(
            centers=rows[best.indices],
            labels=best.labels[inverse].astype(np.int32),
            inertia=best.objective,
            n_iter=best.n_iter,
            medoids=first[best.indices],
        )

    def _keep(self, result: Result, kept) -> None:
        super()._keep(result, kept)
        self.medoid_indices_ = kept[result.medoids]


def _nearest_rows(rows: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Indices of k different rows, each the nearest to its centre that is still free."""
    chosen: list[int] = []
    for center in centers:
        distance = ((rows - center) ** 2).sum(axis=1)
        distance[chosen] = np.inf
        chosen.append(int(np.argmin(distance)))
    return np.array(chosen)
