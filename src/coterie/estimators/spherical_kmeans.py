"""k-means on the unit sphere."""

from typing import ClassVar

from coterie.estimators.base import SIZES_CONSTRAINTS, CenterClusterer
from coterie.kmeans.algorithm import Algorithm
from coterie.kmeans.family import TABLE


class SphericalKMeans(CenterClusterer):
    """k-means by direction: rows are scaled to length one, and the similarity is the cosine.

    It suits text, embeddings and other data whose rows differ by direction (Clarkson et al. 2025, Theorem 4). A row of
    zeros has no direction: it stays at the origin and joins cluster 0.

    Parameters
    ----------
    <n_clusters, init>
        Given centres are scaled to length one.
    <n_init, max_iter, tol, sizes, device, n_jobs, random_state, verbose>

    Attributes
    ----------
    cluster_centers_ : array of shape (n_clusters, n_features)
        The centres, as unit vectors.
    <labels_>
    inertia_ : float
        Weighted sum of 1 - cosine between the rows and their centres.
    <n_iter_, converged_, n_clusters_, prices_, engine_info_, n_features_in_, feature_names_in_>

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import SphericalKMeans
    >>> X = np.array([[1.0, 0.1], [9.0, 1.0], [0.1, 1.0], [1.0, 9.0]])
    >>> SphericalKMeans(n_clusters=2, random_state=0).fit(X).labels_
    array([0, 0, 1, 1], dtype=int32)
    """

    _takes_sparse = True

    _parameter_constraints: ClassVar[dict] = {**CenterClusterer._parameter_constraints, **SIZES_CONSTRAINTS}

    def __init__(
        self,
        n_clusters=8,
        *,
        init="k-means++",
        n_init="auto",
        max_iter=300,
        tol=1e-4,
        sizes=None,
        device=None,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self._set(n_clusters, init, n_init, max_iter, tol, device, n_jobs, random_state, verbose)
        self.sizes = sizes

    def _algorithm(self) -> Algorithm:
        return Algorithm(TABLE["lloyd/spherical"]).with_sizes(self.sizes)
