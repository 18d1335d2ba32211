"""k-means on the unit sphere."""

from coterie.estimators.base import CenterClusterer
from coterie.kmeans.algorithm import Algorithm
from coterie.kmeans.family import TABLE


class SphericalKMeans(CenterClusterer):
    """k-means by direction: rows are scaled to length one, and the similarity is the cosine.

    It suits text, embeddings and other data whose rows differ by direction (Clarkson et al. 2025, Theorem 4). A row of
    zeros has no direction: it stays at the origin and joins cluster 0.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    init : {"k-means++", "random", "spectral"}, array of shape (n_clusters, n_features) or callable, default="k-means++"
        How the starting centres are chosen. "k-means++" is the greedy variant, "random" draws distinct rows, "spectral"
        clusters the projections on the leading eigenvectors. A callable is called as
        ``init(X, n_clusters, random_state=...)`` and returns the centres. Given
        centres are scaled to length one.
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
        The centres, as unit vectors.
    labels_ : int32 array of shape (n_samples,)
        The cluster of every row.
    inertia_ : float
        Weighted sum of 1 - cosine between the rows and their centres.
    n_iter_ : int
        Number of iterations of the run that was kept.
    converged_ : bool
        Whether that run stopped by itself, before ``max_iter``.
    n_clusters_ : int
        Number of clusters that have at least one row.
    engine_info_ : str
        How the fit was computed: by array operations if the table is small, or by the lazy engine with the vector width
        of the processor. Not set by the other engines.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the columns of X, if X is a DataFrame whose column names are all strings.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import SphericalKMeans
    >>> X = np.array([[1.0, 0.1], [9.0, 1.0], [0.1, 1.0], [1.0, 9.0]])
    >>> SphericalKMeans(n_clusters=2, random_state=0).fit(X).labels_
    array([0, 0, 1, 1], dtype=int32)
    """

    _takes_sparse = True

    def _algorithm(self) -> Algorithm:
        return Algorithm(TABLE["lloyd/spherical"])
