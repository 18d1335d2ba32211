"""k-means in which far points count less."""

from numbers import Integral, Real
from typing import ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from coterie.estimators.base import CenterClusterer
from coterie.estimators.soft_kmeans import scaled_gamma
from coterie.kmeans import fused
from coterie.kmeans.family import VARIANTS
from coterie.kmeans.result import Result
from coterie.kmeans.weights import Settings

FAR = 0.1  # the share of points that neither the start nor the choice among runs takes into account


class RobustKMeans(CenterClusterer):
    """Robust k-means: a centre weighs its own points by how near they are (document 002, Algorithm 5).

    No point is thrown out and no share of outliers has to be guessed; far points just count next to nothing.

    Parameters
    ----------
    n_clusters : int, default=4
    weighting : {"softmax", "sparsemax", "top-k"}, default="softmax"
        How a centre turns the scores -gamma ‖x - c‖² of its points into weights. "sparsemax" gives far points exactly
        zero; "top-k" is the softmax over the ``top`` nearest.
    gamma : float or "scale", default="scale"
        Inverse temperature. "scale" is 1 over the mean squared distance of the points to the nearest starting centre,
        so that scaling X scales the centres.
    top : int, default=50
        Points that a centre looks at with "top-k".
    init, n_init, max_iter, tol, device, random_state, verbose
        As for :class:`KMeans`; "k-means++", and the choice of the best of several runs, leave the farthest tenth of the
        points out of account.

    Attributes
    ----------
    cluster_centers_ : array of shape (n_clusters, n_features)
    gamma_ : float
    labels_ : int32 array of shape (n_samples,)
    inertia_ : float
        Weighted sum of squared distances to the nearest centre, over all points.
    n_iter_ : int
    """

    _takes_dask = True

    _parameter_constraints: ClassVar[dict] = {
        **CenterClusterer._parameter_constraints,
        "weighting": [StrOptions({"softmax", "sparsemax", "top-k"})],
        "gamma": [StrOptions({"scale"}), Interval(Real, 0, None, closed="neither")],
        "top": [Interval(Integral, 1, None, closed="left")],
    }
    del _parameter_constraints["n_jobs"]

    def __init__(
        self,
        n_clusters=4,
        *,
        weighting="softmax",
        gamma="scale",
        top=50,
        init="k-means++",
        n_init="auto",
        max_iter=300,
        tol=1e-4,
        device=None,
        random_state=None,
        verbose=0,
    ):
        self.n_clusters = n_clusters
        self.weighting = weighting
        self.gamma = gamma
        self.top = top
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def _start_trim(self) -> float:
        return FAR

    def _criterion(self, result: Result, X, weight) -> float:
        """The inertia without the farthest points, which would otherwise decide which run is best."""
        _, cost = self._choose(X, result.centers)
        weight = np.ones(len(cost)) if weight is None else weight
        order = np.argsort(cost)
        near = np.cumsum(weight[order]) <= (1.0 - FAR) * weight.sum()
        return float(weight[order][near] @ cost[order][near])

    def _run(self, X, weight, random_state, on_iteration) -> Result:
        centers = self._start(X, weight, random_state)
        self.gamma_ = scaled_gamma(self._fused(X, weight), centers, self.gamma, 1.0)
        return fused.run(
            X,
            centers,
            VARIANTS[f"robust-{self.weighting.replace('-', '')}"],
            Settings(gamma=self.gamma_, top=self.top),
            sample_weight=weight,
            max_iter=self.max_iter,
            tol=self._absolute_tol(X, weight),
            device=self._device(),
            assigner=self._assigner(X),
            on_iteration=on_iteration,
        )
