"""Soft k-means."""

from numbers import Real
from typing import ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from coterie.distributed import is_dask
from coterie.estimators.base import CenterClusterer
from coterie.kmeans.algorithm import Algorithm
from coterie.kmeans.family import TABLE
from coterie.kmeans.scaling import exponent_of, scaled, scaled_algorithm


class SoftKMeans(CenterClusterer):
    """Soft k-means: every point belongs to every cluster with a share.

    The shares of a point are softmax(-gamma ‖x - c‖²) (Clarkson et al., Algorithm 2). With ``mixing_weights=True`` the
    weights of the clusters are estimated as well and their logarithms are added to the scores; this is EM for a mixture
    of spherical Gaussians with the known variance 1/(2 gamma).

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    gamma : float or "scale", default="scale"
        Inverse temperature. "scale" is n_features/2 over the mean squared distance of the points to the nearest
        starting centre, which is the value for a spherical Gaussian of that size; scaling X scales the centres.
    mixing_weights : bool, default=False
        Whether the weights of the clusters are estimated. Otherwise all clusters have the same weight.
    init : {"k-means++", "random", "spectral"}, array of shape (n_clusters, n_features) or callable, default="k-means++"
        How the starting centres are chosen. "k-means++" is the greedy variant, "random" draws distinct rows, "spectral"
        clusters the projections on the leading eigenvectors. A callable is called as
        ``init(X, n_clusters, random_state=...)`` and returns the centres.
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
        The centres, the means of the points weighted by their shares.
    weights_ : array of shape (n_clusters,)
        The mixing weights of the clusters; all equal unless ``mixing_weights``.
    gamma_ : float
        The inverse temperature that was used.
    labels_ : int32 array of shape (n_samples,)
        The cluster in which each row has the largest share.
    inertia_ : float
        Sum of squared distances to all centres, weighted by the shares.
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
    >>> from coterie import SoftKMeans
    >>> X = np.array([[0.0], [0.1], [0.2], [1.0], [1.1], [1.2]])
    >>> SoftKMeans(n_clusters=2, random_state=0).fit(X).predict_proba([[0.6]]).round(2)
    array([[0.5, 0.5]])
    """

    _parameter_constraints: ClassVar[dict] = {
        **CenterClusterer._parameter_constraints,
        "gamma": [StrOptions({"scale"}), Interval(Real, 0, None, closed="neither")],
        "mixing_weights": ["boolean"],
    }

    def __init__(
        self,
        n_clusters=8,
        *,
        gamma="scale",
        mixing_weights=False,
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
        self.gamma = gamma
        self.mixing_weights = mixing_weights

    def _algorithm(self) -> Algorithm:
        gamma = None if self.gamma == "scale" else float(self.gamma)
        return Algorithm(TABLE["soft"], gamma=gamma, mixing_weights=self.mixing_weights)

    def predict_proba(self, X):
        """Compute the share of every row in every cluster.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            New rows; a Dask array or DataFrame gives a lazy Dask array.

        Returns
        -------
        shares : array of shape (n_samples, n_clusters)
            Rows sum to one.
        """
        if is_dask(X):
            from coterie.estimators import on_dask

            return on_dask.per_cluster(self, X, "predict_proba")
        from coterie.kmeans import engines

        X = self._checked_new(X)
        exponent = exponent_of(X, self.cluster_centers_)
        X, centers = scaled(X, -exponent), scaled(self.cluster_centers_, -exponent)
        algorithm = scaled_algorithm(self._fitted_algorithm(), -exponent)
        return engines.shares(X, centers, self.weights_, algorithm, self._device(), self._n_threads())
