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
    n_clusters : int, default=8
        Number of clusters.
    weighting : {"softmax", "sparsemax", "top-k"}, default="softmax"
        How a centre turns the scores -gamma ‖x - c‖² of its points into weights. "sparsemax" gives distant points a
        weight of exactly zero; "top-k" is the softmax over the ``top`` nearest points.
    gamma : float or "scale", default="scale"
        Inverse temperature. "scale" is 1 over the mean squared distance of the points to the nearest starting centre,
        so that scaling X scales the centres.
    top : int, default=50
        Number of points that a centre takes into account with ``weighting="top-k"``.
    init : {"k-means++", "random", "spectral"}, array of shape (n_clusters, n_features) or callable, default="k-means++"
        How the starting centres are chosen. "k-means++" is the greedy variant and disregards the farthest
        tenth of the points; "random" draws distinct rows; "spectral" clusters the projections on the leading
        eigenvectors. A callable is called as ``init(X, n_clusters, random_state=...)`` and returns the centres.
    n_init : int or "auto", default="auto"
        Number of runs from different starts; the run with the lowest inertia of the nearest 90% of the points is kept.
        "auto" is 10 for ``init="random"`` and 1 otherwise. It is ignored, with a warning, if ``init`` is an array.
    max_iter : int, default=300
        Maximum number of iterations of a run. A run that reaches it raises a ``ConvergenceWarning``.
    tol : float, default=1e-4
        A run stops when the sum of the squared moves of the centres is at most ``tol`` times the mean variance of the
        columns. With 0 it stops when the labels repeat.
    device : str, torch.device or None, default=None
        Where torch computes. None is the CPU, where compiled code without torch is used as far as possible.
    n_jobs : int or None, default=None
        Number of threads of the compiled code. None and -1 use all processors. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed or generator of the random starts. Pass an int for reproducible results.
    verbose : int, default=0
        1 shows a progress bar on standard error, 2 prints one line per iteration.

    Attributes
    ----------
    cluster_centers_ : array of shape (n_clusters, n_features)
        The centres, the weighted means of their points.
    gamma_ : float
        The inverse temperature that was used.
    labels_ : int32 array of shape (n_samples,)
        The cluster of every row.
    inertia_ : float
        Weighted sum of squared distances to the nearest centre, over all points.
    n_iter_ : int
        Number of iterations of the run that was kept.
    converged_ : bool
        Whether that run stopped by itself, before ``max_iter``.
    n_clusters_ : int
        Number of clusters that have at least one row.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the columns of X, if X is a DataFrame whose column names are all strings.

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
        super().__init__(
            n_clusters,
            init=init,
            n_init=n_init,
            max_iter=max_iter,
            tol=tol,
            device=device,
            n_jobs=n_jobs,
            random_state=random_state,
            verbose=verbose,
        )
        self.weighting = weighting
        self.gamma = gamma
        self.top = top

    def _algorithm(self) -> Algorithm:
        row = TABLE[f"robust-{self.weighting.replace('-', '')}"]
        gamma = None if self.gamma == "scale" else float(self.gamma)
        return Algorithm(row, gamma=gamma, top=self.top, outliers=OUTLIERS)
