"""k-medoids on squared distances."""

from numbers import Real
from typing import ClassVar

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from coterie.estimators.base import CenterClusterer
from coterie.estimators.in_blocks import InBlocks, checked_rows_in, drawn, rows_in
from coterie.kmeans.algorithm import Algorithm
from coterie.kmeans.family import TABLE
from coterie.kmeans.iteration import Result

SAMPLE = 50_000  # rows of a file or of Dask data that the medoids are found from


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

    medoid_indices_: np.ndarray
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

    def fit(self, X, y=None, sample_weight=None):
        """Find the medoids.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features), Dask array or DataFrame, path, or ``Chunks``
            Rows to cluster. Rows in files or on Dask are fitted by a sample of at most 50,000 of them; all of them are
            then labelled and counted in ``inertia_``.
        y : ignored
            Present for API consistency.
        sample_weight : array of shape (n_samples,), default=None
            How often each row counts; None gives all rows the weight 1. Only for rows in memory.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        rows = rows_in(X, self)
        if not isinstance(rows, InBlocks):
            return super().fit(rows, y, sample_weight)
        rows = checked_rows_in(self, rows, sample_weight=sample_weight)
        sample, places = drawn(rows, SAMPLE, check_random_state(self.random_state))
        super().fit(sample)
        rows.check(self, reset=True)  # the sample has no names
        self.medoid_indices_ = places[self.medoid_indices_]
        if len(sample) < len(rows):
            self.inertia_ = -self.score(rows)
        self.labels_ = self.predict(rows)
        return self

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
