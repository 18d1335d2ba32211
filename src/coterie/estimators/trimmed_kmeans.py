"""k-means that leaves out the farthest points."""

import warnings
from numbers import Real
from typing import ClassVar

from sklearn.utils._param_validation import Interval

from coterie.estimators.base import SIZES_CONSTRAINTS, CenterClusterer
from coterie.kmeans.algorithm import Algorithm
from coterie.kmeans.family import TABLE


class TrimmedKMeans(CenterClusterer):
    """Trimmed k-means: the farthest points, a given share of all, take no part in the centres.

    The points that are left out are outliers, with label -1 (Clarkson et al. 2025, Algorithm 4).

    Parameters
    ----------
    <n_clusters>
    outliers : float in [0, 1) or None, default=0.05
        The share of the total weight that stays outside all clusters, with the label -1; None is 0.
    per_cluster : bool, default=False
        If False, the share is taken over all points, so that the outliers may lie anywhere. If True, every cluster is
        trimmed at the percentile 100 (1 - outliers) of its own distances, as in the paper.
    <init>
        Here "k-means++" disregards the farthest ``outliers`` of the points.
    <n_init, max_iter, tol, sizes, device, n_jobs, random_state, verbose>
    trim : float, default=None
        The name of ``outliers`` in version 0.1.0, which will be removed.

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
    <n_iter_, converged_, n_clusters_, prices_, n_features_in_, feature_names_in_>

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import TrimmedKMeans
    >>> X = np.array([[0.0], [0.1], [0.2], [10.0], [10.1], [10.2], [500.0]])
    >>> TrimmedKMeans(n_clusters=2, outliers=0.2, random_state=0).fit(X).outliers_
    array([False, False, False, False, False, False,  True])
    """

    _parameter_constraints: ClassVar[dict] = {
        **CenterClusterer._parameter_constraints,
        "outliers": [None, Interval(Real, 0, 1, closed="left")],
        "trim": [None, Interval(Real, 0, 1, closed="left")],
        "per_cluster": ["boolean"],
        **SIZES_CONSTRAINTS,
    }

    def __init__(
        self,
        n_clusters=8,
        *,
        outliers=0.05,
        per_cluster=False,
        init="k-means++",
        n_init="auto",
        max_iter=300,
        tol=1e-4,
        sizes=None,
        device=None,
        n_jobs=None,
        random_state=None,
        verbose=0,
        trim=None,
    ):
        self._set(n_clusters, init, n_init, max_iter, tol, device, n_jobs, random_state, verbose)
        self.outliers = outliers
        self.trim = trim
        self.per_cluster = per_cluster
        self.sizes = sizes

    def _algorithm(self) -> Algorithm:
        share = float(self.outliers or 0.0)
        if self.trim is not None:
            warnings.warn(
                "TrimmedKMeans: trim is called outliers, and will be removed in 0.3.", FutureWarning, stacklevel=3
            )
            share = float(self.trim)
        if self.sizes is not None:
            if self.per_cluster:
                raise ValueError("sizes bound the rows that are kept: set per_cluster=False, or sizes=None.")
            return Algorithm(TABLE["lloyd"], outliers=share).with_sizes(self.sizes)
        return Algorithm(TABLE["trimmed"], keep=1.0 - share, per_cluster=self.per_cluster, outliers=share)

    @property
    def outliers_(self):
        """Whether each row was left out."""
        return self.labels_ == -1
