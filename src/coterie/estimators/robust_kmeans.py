"""k-means in which distant points have little weight."""

from numbers import Integral, Real
from typing import ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from coterie.estimators.base import CenterClusterer
from coterie.kmeans.algorithm import Algorithm
from coterie.kmeans.family import TABLE

OUTLIERS = 0.1  # the share of points that neither the start nor the choice among runs takes into account


class RobustKMeans(CenterClusterer):
    """Robust k-means: a centre weighs its points by how near they are.

    No point is removed and no share of outliers has to be guessed; distant points have almost no weight (Clarkson et
    al., Algorithm 5).

    Parameters
    ----------
    <n_clusters>
    weighting : {"softmax", "sparsemax", "top-k"}, default="softmax"
        How a centre turns the scores -gamma ‖x - c‖² of its points into weights. "sparsemax" gives distant points a
        weight of exactly zero; "top-k" is the softmax over the ``top`` nearest points.
    gamma : float or "scale", default="scale"
        Inverse temperature. "scale" is 1 over the mean squared distance of the points to the nearest starting centre,
        so that scaling X scales the centres.
    top : int, default=50
        Number of points that a centre takes into account with ``weighting="top-k"``.
    <init>
        Here "k-means++" disregards the farthest tenth of the points.
    n_init : int or "auto", default="auto"
        Number of runs from different starts; the run with the lowest inertia of the nearest 90% of the points is kept.
        "auto" is 10 for ``init="random"`` and 1 otherwise. It is ignored, with a warning, if ``init`` is an array.
    <max_iter, tol, device, n_jobs, random_state, verbose>

    Attributes
    ----------
    cluster_centers_ : array of shape (n_clusters, n_features)
        The centres, the weighted means of their points.
    gamma_ : float
        The inverse temperature that was used.
    <labels_>
    inertia_ : float
        Weighted sum of squared distances to the nearest centre, over all points.
    <n_iter_, converged_, n_clusters_, n_features_in_, feature_names_in_>

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import RobustKMeans
    >>> X = np.array([[0.0], [0.1], [0.2], [10.0], [10.1], [10.2], [30.0]])
    >>> RobustKMeans(n_clusters=2, random_state=0).fit(X).labels_
    array([1, 1, 1, 0, 0, 0, 0], dtype=int32)
    """

    _parameter_constraints: ClassVar[dict] = {
        **CenterClusterer._parameter_constraints,
        "weighting": [StrOptions({"softmax", "sparsemax", "top-k"})],
        "gamma": [StrOptions({"scale"}), Interval(Real, 0, None, closed="neither")],
        "top": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        n_clusters=8,
        *,
        weighting="softmax",
        gamma="scale",
        top=50,
        init="k-means++",
        n_init="auto",
        max_iter=300,
        tol=1e-4,
        device=None,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self._set(n_clusters, init, n_init, max_iter, tol, device, n_jobs, random_state, verbose)
        self.weighting = weighting
        self.gamma = gamma
        self.top = top

    def _algorithm(self) -> Algorithm:
        row = TABLE[f"robust-{self.weighting.replace('-', '')}"]
        gamma = None if self.gamma == "scale" else float(self.gamma)
        return Algorithm(row, gamma=gamma, top=self.top, outliers=OUTLIERS)
