"""k-means that leaves out the farthest points."""

from numbers import Real
from typing import ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from coterie.distributed import is_dask
from coterie.em import Iteration
from coterie.estimators import on_dask
from coterie.estimators.base import CenterClusterer
from coterie.estimators.validation import check_weights
from coterie.kmeans import fused
from coterie.kmeans.family import VARIANTS
from coterie.kmeans.result import Result
from coterie.kmeans.weights import Settings


class TrimmedKMeans(CenterClusterer):
    """Trimmed k-means: a share of the points, the farthest, takes no part in the centres (document 002, Algorithm 4).

    Parameters
    ----------
    n_clusters : int, default=4
    trim : float in [0, 1), default=0.05
        The share of the total weight that may be left out.
    per_cluster : bool, default=False
        False trims over all points, so that outliers may all lie near one cluster. True trims each cluster by itself,
        at the percentile 100 (1 - trim) of its distances, as Algorithm 4 does.
    init, n_init, max_iter, tol, device, n_jobs, random_state, verbose
        As for :class:`KMeans`; "k-means++" here leaves the farthest ``trim`` of the points out of account.

    Attributes
    ----------
    cluster_centers_ : array of shape (n_clusters, n_features)
    threshold_ : array of shape (n_clusters,)
        The largest squared distance to each centre that was kept; the same for all centres unless ``per_cluster``.
    labels_ : int32 array of shape (n_samples,)
        -1 for the points that were left out. ``predict`` gives -1 beyond the threshold.
    inertia_ : float
        Weighted sum of squared distances of the points that were kept.
    n_iter_ : int
    """

    _variant = VARIANTS["trimmed"]
    _takes_dask = True

    _parameter_constraints: ClassVar[dict] = {
        **CenterClusterer._parameter_constraints,
        "trim": [Interval(Real, 0, 1, closed="left")],
        "per_cluster": ["boolean"],
    }

    def __init__(
        self,
        n_clusters=4,
        *,
        trim=0.05,
        per_cluster=False,
        init="k-means++",
        n_init="auto",
        max_iter=300,
        tol=1e-4,
        device=None,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self.n_clusters = n_clusters
        self.trim = trim
        self.per_cluster = per_cluster
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _start_trim(self) -> float:
        return self.trim

    def _run(self, X, weight, random_state, on_iteration) -> Result:
        return fused.run(
            X,
            self._start(X, weight, random_state),
            self._variant,
            Settings(keep=1.0 - self.trim),
            per_cluster=self.per_cluster,
            sample_weight=weight,
            max_iter=self.max_iter,
            tol=self._absolute_tol(X, weight),
            device=self._device(),
            assigner=self._assigner(X),
            on_iteration=on_iteration,
        )

    def _keep(self, result: Result, kept) -> None:
        super()._keep(result, kept)
        self.threshold_ = np.asarray(result.limits)

    def _attributes_during_fit(self, iteration: Iteration) -> dict:
        attributes = super()._attributes_during_fit(iteration)
        return {**attributes, "threshold_": np.asarray(iteration.expectation.limits)}

    def _labels(self, X) -> np.ndarray:
        labels, cost = self._choose(X)
        return np.where(cost <= self.threshold_[labels], labels, np.int32(-1))

    def score(self, X, y=None, sample_weight=None):
        """Minus the sum of squared distances of the rows within the threshold: the higher, the better."""
        if is_dask(X):
            return on_dask.score(self, X, sample_weight)
        X = self._checked_new(X)
        labels, cost = self._choose(X)
        weight = check_weights(X, sample_weight)
        counts = (cost <= self.threshold_[labels]) * (1.0 if weight is None else weight)
        return -float(counts @ cost)
