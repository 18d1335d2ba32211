"""k-means on the unit sphere."""

from scipy import sparse

from coterie.estimators.base import CenterClusterer
from coterie.kmeans import fused, lazy
from coterie.kmeans.result import Result
from coterie.kmeans.weights import Settings


class SphericalKMeans(CenterClusterer):
    """k-means by direction: rows are scaled to length one, similarity is the cosine (document 002, Theorem 4).

    It suits texts, embeddings and whatever else is told apart by direction. A row of zeros has no direction: it stays
    at the origin and goes to cluster 0.

    Parameters
    ----------
    n_clusters, init, n_init, max_iter, tol, device, n_jobs, random_state, verbose
        As for :class:`KMeans`. An array ``init`` is scaled to length one too.

    Attributes
    ----------
    cluster_centers_ : array of shape (n_clusters, n_features)
        Unit vectors.
    labels_ : int32 array of shape (n_samples,)
    inertia_ : float
        Weighted sum of 1 - cosine to the own centre.
    n_iter_ : int
    """

    _spherical = True
    _takes_sparse = True
    _takes_dask = True

    def __init__(
        self,
        n_clusters=4,
        *,
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
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _run(self, X, weight, random_state, on_iteration) -> Result:
        centers = self._start(X, weight, random_state)
        loop = {
            "spherical": True,
            "sample_weight": weight,
            "max_iter": self.max_iter,
            "tol": self._absolute_tol(X, weight),
            "on_iteration": on_iteration,
        }
        # A row of zeros is as far from all centres: only dot products put it into cluster 0 whatever their rounding.
        if not sparse.issparse(X) and self._device().type == "cpu" and X.any(axis=1).all():
            return lazy.run(X, centers, n_threads=self._n_threads(), **loop)
        return fused.run(X, centers, self._variant, Settings(), device=self._device(), **loop)
