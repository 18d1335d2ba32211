"""Lloyd's k-means."""

from typing import ClassVar

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import _num_samples

from coterie.constraints import Constraints
from coterie.estimators.base import SIZES_CONSTRAINTS, CenterClusterer
from coterie.estimators.in_blocks import InBlocks, checked_rows_in, rows_in
from coterie.estimators.sources import RowsInMemory, starts_in_memory
from coterie.estimators.validation import check_enough_rows, check_rows, check_weights
from coterie.kmeans.algorithm import Algorithm
from coterie.kmeans.family import TABLE
from coterie.kmeans.scaling import exponent_of, scaled


class KMeans(CenterClusterer):
    """k-means clustering by Lloyd's algorithm.

    The algorithm is exact: points at equal distance from two centres go to the lower index, and an empty cluster takes
    over the points farthest from their centres, as in scikit-learn. All engines give the same result. One of them is a
    transformer whose weights are Lloyd's algorithm (Clarkson et al. 2025, "Finding Clustering Algorithms in the
    Transformer Architecture").

    Parameters
    ----------
    <n_clusters, init, n_init, max_iter, tol>
    algorithm : {"lloyd", "learned"}, default="lloyd"
        "learned" begins with ten pretrained layers, which reach a lower inertia than ten iterations of Lloyd's
        algorithm, and continues with Lloyd's algorithm, so that the result is a fixed point as well.
    engine : {"auto", "literal", "fused", "lazy"}, default="auto"
        "lazy" (dense rows on the CPU) skips distances that provably cannot change the result. "fused" computes
        all scores in blocks, on any device. "literal" multiplies the matrices of the transformer for every pair of rows
        (at most 20,000 rows) and keeps ``trajectory_``. "auto" is "lazy" where possible and "fused" elsewhere.
    <sizes, device, n_jobs, random_state, verbose>

    Attributes
    ----------
    cluster_centers_ : array of shape (n_clusters, n_features)
        The centres, the means of the clusters.
    <labels_>
    inertia_ : float
        Weighted sum of squared distances of the rows to their nearest centres.
    <n_iter_, converged_, n_clusters_, n_features_in_, feature_names_in_>
    counts_ : array of shape (n_clusters,)
        The total weight of the rows of each cluster.
    <prices_, engine_info_, trajectory_>

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import KMeans
    >>> X = np.array([[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]])
    >>> KMeans(n_clusters=2, random_state=0).fit(X).cluster_centers_[:, 0]
    array([ 1., 10.])
    """

    _takes_sparse = True

    _parameter_constraints: ClassVar[dict] = {
        **CenterClusterer._parameter_constraints,
        "algorithm": [StrOptions({"lloyd", "learned"})],
        "engine": [StrOptions({"auto", "literal", "fused", "lazy"})],
        **SIZES_CONSTRAINTS,
    }

    def __init__(
        self,
        n_clusters=8,
        *,
        init="k-means++",
        n_init="auto",
        max_iter=300,
        tol=1e-4,
        algorithm="lloyd",
        engine="auto",
        sizes=None,
        device=None,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self._set(n_clusters, init, n_init, max_iter, tol, device, n_jobs, random_state, verbose)
        self.algorithm = algorithm
        self.engine = engine
        self.sizes = sizes

    def _algorithm(self) -> Algorithm:
        return Algorithm(TABLE["lloyd"]).with_sizes(self.sizes)

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None, *, must_link=None, cannot_link=None):
        """Fit the centres to the data.

        Parameters
        ----------
        X : array, DataFrame, Dask array or DataFrame, CSR matrix, path, or ``coterie.distributed.chunks.Chunks``
            Rows to cluster, of shape (n_samples, n_features). A path is that of a Parquet or NPY file, which is read in
            chunks once per iteration and need not fit into memory.
        y : int array of shape (n_samples,), default=None
            Labels 0, 1, ... of the rows whose cluster is known, and -1 or NaN for all others. These rows keep their
            labels, their means are the starting centres, and the other rows join the nearest centre. A y without -1 is
            ignored, like the targets that a pipeline passes on. Not supported for files, chunks and Dask data.
        sample_weight : array of shape (n_samples,), default=None
            How often each row counts. A row of weight 2 is equivalent to two copies of the row; a row of weight 0 is
            ignored. None gives all rows the weight 1. Not supported for files and chunks.
        must_link : array of shape (n_pairs, 2), default=None
            Pairs of rows, as positions in X, that share a cluster.
        cannot_link : array of shape (n_pairs, 2), default=None
            Pairs of rows that do not share a cluster.

        Returns
        -------
        self : object
            The fitted estimator. ``predict`` uses the centres alone.
        """
        if y is None and must_link is None and cannot_link is None:
            return super().fit(X, y, sample_weight)
        X = rows_in(X, self)
        if isinstance(X, InBlocks):
            checked_rows_in(self, X, y=y, must_link=must_link, cannot_link=cannot_link)
        known = Constraints.of(_num_samples(X), y, must_link, cannot_link)
        if known is not None and self.engine != "auto":
            raise ValueError(f"engine={self.engine!r} knows no y, must_link and cannot_link: use engine='auto'.")
        return self._fit(RowsInMemory(self, X, sample_weight, known))

    def _require_plain_fit(self, what: str) -> None:
        super()._require_plain_fit(what)
        if self.algorithm != "lloyd":
            raise ValueError(f"{what} cannot be clustered with algorithm={self.algorithm!r}: use algorithm='lloyd'.")

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X, y=None, sample_weight=None):
        """Update the centres with more rows: each row joins its nearest centre, and centres are the means of all rows.

        The first call chooses the start from its rows. After ``fit``, the rows of the fit count, too. ``labels_`` and
        ``inertia_`` are those of the rows just given, by the centres before the update; ``counts_`` and ``sums_`` hold
        the total weight and the weighted sum of all rows of each cluster.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)
        y : ignored
            Present for API consistency.
        sample_weight : array of shape (n_samples,), default=None
            How often each row counts.

        Returns
        -------
        self : object
            The updated estimator.
        """
        from coterie.kmeans import single_pass
        from coterie.kmeans.statistics import Statistics

        if self._algorithm().variant.sized:
            raise ValueError("partial_fit knows no sizes: fit all rows at once, or set sizes=None.")
        first = not hasattr(self, "cluster_centers_")
        X = check_rows(self, X, reset=first)
        weight = check_weights(X, sample_weight)
        if weight is not None:
            X, weight = X[weight > 0], weight[weight > 0]
        if first:
            check_enough_rows(len(X), self.n_clusters)
            random_state = check_random_state(self.random_state)
            self.cluster_centers_ = next(starts_in_memory(self, X, weight, self._algorithm(), random_state))
            self.n_iter_, self.converged_, self._n_features_out = 0, False, self.n_clusters
        centers = np.asarray(self.cluster_centers_, dtype=X.dtype)
        counts = getattr(self, "counts_", np.zeros(len(centers)))
        sums = getattr(self, "sums_", counts[:, None] * centers.astype(np.float64))
        exponent = exponent_of(X, centers)
        X, centers = scaled(X, -exponent), scaled(centers, -exponent)
        self.labels_ = np.empty(len(X), np.int32)
        new = single_pass.statistics(X, centers, weight, self._n_threads(), self.labels_)
        total = Statistics(scaled(sums, -exponent), counts) + new
        self.cluster_centers_ = scaled(total.centers(centers), exponent)
        self.sums_, self.counts_ = scaled(total.sums, exponent), total.counts
        self.inertia_ = float(np.ldexp(new.inertia, 2 * exponent))
        self.n_clusters_ = int(np.count_nonzero(total.counts))
        self.n_iter_ += 1
        return self
