"""k-means that leaves out the farthest points."""

from numbers import Real
from typing import ClassVar

from sklearn.utils._param_validation import Interval

from coterie.estimators.base import CenterClusterer
from coterie.kmeans.algorithm import Algorithm
from coterie.kmeans.family import TABLE


class TrimmedKMeans(CenterClusterer):
    """Trimmed k-means: the farthest points, a given share of all, take no part in the centres.

    The points that are left out are outliers, with label -1 (Clarkson et al. 2025, Algorithm 4).

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    trim : float in [0, 1), default=0.05
        The share of the total weight that is left out.
    per_cluster : bool, default=False
        If False, the share is taken over all points, so that the outliers may lie anywhere. If True, every cluster is
        trimmed at the percentile 100 (1 - trim) of its own distances, as in the paper.
    init : {"k-means++", "random", "spectral"}, array of shape (n_clusters, n_features) or callable, default="k-means++"
        How the starting centres are chosen. "k-means++" is the greedy variant and disregards the farthest
        ``trim`` of the points; "random" draws distinct rows; "spectral" clusters the projections on the leading
        eigenvectors. A callable is called as ``init(X, n_clusters, random_state=...)`` and returns the centres.
    n_init : int or "auto", default="auto"
        Number of runs from different starts; the run with the lowest inertia is kept. "auto" is 10 for
        ``init="random"`` and 1 otherwise. It is ignored, with a warning, if ``init`` is an array.
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
        The centres, the means of the points that were kept.
    threshold_ : array of shape (n_clusters,)
        The largest squared distance to each centre that was kept; equal for all centres unless ``per_cluster``.
    labels_ : int32 array of shape (n_samples,)
        The cluster of every row, or -1 for an outlier. ``predict`` gives -1 beyond the threshold.
    outliers_ : bool array of shape (n_samples,)
        Whether a row is an outlier.
    inertia_ : float
        Weighted sum of squared distances of the points that were kept.
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
    >>> from coterie import TrimmedKMeans
    >>> X = np.array([[0.0], [0.1], [0.2], [10.0], [10.1], [10.2], [500.0]])
    >>> TrimmedKMeans(n_clusters=2, trim=0.2, random_state=0).fit(X).outliers_
    array([False, False, False, False, False, False,  True])
    """

    _parameter_constraints: ClassVar[dict] = {
        **CenterClusterer._parameter_constraints,
        "trim": [Interval(Real, 0, 1, closed="left")],
        "per_cluster": ["boolean"],
    }

    def __init__(
        self,
        n_clusters=8,
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
        self.trim = trim
        self.per_cluster = per_cluster

    def _algorithm(self) -> Algorithm:
        return Algorithm(
            TABLE["trimmed"], keep=1.0 - self.trim, per_cluster=self.per_cluster, outliers=float(self.trim)
        )

    @property
    def outliers_(self):
        """Whether each row was left out."""
        return self.labels_ == -1
