"""k-medoids on squared distances."""

from numbers import Real
from typing import ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from coterie.estimators.base import CenterClusterer
from coterie.kmeans.algorithm import Algorithm
from coterie.kmeans.family import TABLE
from coterie.kmeans.iteration import Result


class KMedoids(CenterClusterer):
    """k-medoids on squared Euclidean distances: every centre is a row of X.

    Parameters
    ----------
    <n_clusters>
    method : {"annealed", "sampler"}, default="annealed"
        "sampler" is the randomised algorithm of Clarkson et al. (2025, Algorithm 6), a random walk that ends after
        ``max_iter`` steps. "annealed" raises its inverse temperature step by step, keeps the best medoids and
        ends with swaps, so that no replacement of one medoid improves the result.
    gamma : float, default=1.0
        Inverse temperature of the sampler.
    delta : float, default=10.0
        Gap of the sampler: rows of other clusters score 2 ``delta`` lower.
    <init>
        Each starting centre is moved to the nearest row.
    <n_init>
    max_iter : int, default=30
        Number of steps of the sampler.
    <random_state, verbose>

    Attributes
    ----------
    medoid_indices_ : array of shape (n_clusters,)
        Which rows of X are the medoids (of equal rows, the first that takes part).
    cluster_centers_ : array of shape (n_clusters, n_features)
        The centres, which are those rows.
    <labels_>
    inertia_ : float
        Weighted sum of squared distances of the rows to their nearest medoids.
    <n_iter_, converged_, n_clusters_, n_features_in_, feature_names_in_>

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import KMedoids
    >>> X = np.array([[0.0], [0.1], [0.3], [10.0], [10.1], [10.3]])
    >>> KMedoids(n_clusters=2, random_state=0).fit(X).cluster_centers_.ravel()
    array([ 0.1, 10.1])
    """

    _takes_blocks = False

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
        n_clusters=8,
        *,
        method="annealed",
        gamma=1.0,
        delta=10.0,
        init="k-means++",
        n_init="auto",
        max_iter=30,
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

    def _algorithm(self) -> Algorithm:
        return Algorithm(TABLE["medoids"], gamma=float(self.gamma), delta=self.delta)

    def _run(self, X, start, weight, algorithm, tol, random_state, on_iteration) -> Result:
        from coterie.kmeans import medoids

        rows, first, inverse = np.unique(X, axis=0, return_index=True, return_inverse=True)
        inverse = inverse.reshape(-1)
        weight = np.bincount(inverse, weight).astype(np.float64)
        # With fewer distinct rows than clusters every row is a medoid, and the first stands for those that are missing.
        start = _nearest_rows(rows, start)
        if self.method == "sampler":
            best = medoids.sample(
                rows, weight, start, random_state, algorithm.gamma, self.delta, self.max_iter, on_iteration
            )
        else:
            best = medoids.anneal(rows, weight, start, random_state, self.max_iter, on_iteration)
        indices = np.resize(best.indices, self.n_clusters)
        return Result(
            centers=rows[indices],
            labels=best.labels[inverse].astype(np.int32),
            inertia=best.objective,
            n_iter=best.n_iter,
            medoids=first[indices],
        )

    def _keep(self, result: Result, kept) -> None:
        super()._keep(result, kept)
        self.medoid_indices_ = kept[result.medoids]


def _nearest_rows(rows: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Indices of different rows, each the nearest to its centre that is still free; all rows if there are too few."""
    chosen: list[int] = []
    for center in centers[: len(rows)]:
        distance = ((rows - center) ** 2).sum(axis=1)
        distance[chosen] = np.inf
        chosen.append(int(np.argmin(distance)))
    return np.array(chosen)
