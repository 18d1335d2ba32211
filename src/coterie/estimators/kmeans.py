"""Lloyd's k-means."""

from typing import ClassVar

from scipy import sparse
from sklearn.base import _fit_context
from sklearn.utils._param_validation import StrOptions

from coterie import checkpoints
from coterie.estimators import on_chunks
from coterie.estimators.base import CenterClusterer
from coterie.kmeans import fused, lazy, learned, literal
from coterie.kmeans.family import TABLE
from coterie.kmeans.result import Result
from coterie.kmeans.weights import Settings


class KMeans(CenterClusterer):
    """k-means by Lloyd's algorithm, exactly, as a transformer runs it.

    Every engine gives the same answer: points exactly between two centres go to the lower index, and empty clusters
    take over the points farthest from their centres, as in scikit-learn.

    Parameters
    ----------
    n_clusters : int, default=4
    init : {"k-means++", "random", "spectral"}, array of shape (n_clusters, n_features) or callable
        "k-means++" is the greedy one. "spectral" projects on the leading eigenvectors first. A callable gets
        ``(X, n_clusters, random_state)``.
    n_init : int or "auto", default="auto"
        Starts to try; the lowest inertia wins. "auto" is 10 for ``init="random"`` and 1 otherwise.
    max_iter : int, default=300
    tol : float, default=1e-4
        Stop when the centres move by less, in squares, relative to the mean variance of the columns.
    algorithm : {"lloyd", "learned"}, default="lloyd"
        "learned" begins with ten layers whose temperatures, steps and momenta were trained to get lower than Lloyd's
        algorithm does in as many; then it goes on as Lloyd's, so that the result is a fixed point all the same.
    engine : {"auto", "literal", "fused", "lazy"}, default="auto"
        "literal" runs the real matrices on every token (at most 20,000 rows) and keeps ``trajectory_``; "fused" leaves
        out the self-attention that cancels; "lazy" (dense rows on the CPU) computes no score that provably cannot
        change the answer. "auto" is lazy where it can be, else fused.
    device : str, torch.device or None, default=None
        Where the fused engine computes; None is the CPU.
    n_jobs : int or None, default=None
        Threads; None uses all processors.
    random_state : int, RandomState or None, default=None
    verbose : int, default=0
        1 shows a progress bar on standard error.

    Attributes
    ----------
    cluster_centers_ : array of shape (n_clusters, n_features)
    labels_ : int32 array of shape (n_samples,)
    inertia_ : float
        Weighted sum of squared distances to the nearest centre.
    n_iter_ : int
    trajectory_ : list of (centers, assignments), layer by layer
        Only with ``engine="literal"``.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import KMeans
    >>> X = np.array([[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]])
    >>> KMeans(n_clusters=2, random_state=0).fit(X).cluster_centers_[:, 0]
    array([ 1., 10.])
    """

    _takes_sparse = True
    _takes_dask = True

    _parameter_constraints: ClassVar[dict] = {
        **CenterClusterer._parameter_constraints,
        "algorithm": [StrOptions({"lloyd", "learned"})],
        "engine": [StrOptions({"auto", "literal", "fused", "lazy"})],
    }

    def __init__(
        self,
        n_clusters=4,
        *,
        init="k-means++",
        n_init="auto",
        max_iter=300,
        tol=1e-4,
        algorithm="lloyd",
        engine="auto",
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
        self.algorithm = algorithm
        self.engine = engine
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Find the centres.

        Parameters
        ----------
        X : array, DataFrame, Dask array or DataFrame, CSR matrix, path, or ``coterie.data.chunks.Chunks``
            A path names a Parquet or NPY file; its rows are read in chunks, once more in every iteration, and need not
            fit into memory. The start is then made from 50,000 distinct rows or more, chosen by their values.
        y : ignored
        sample_weight : array of shape (n_samples,), optional
            How often each row counts. A row of weight 2 is the same as the row twice; a row of weight 0 takes no part.

        Returns
        -------
        self
        """
        for name in ("sums_", "counts_"):
            self.__dict__.pop(name, None)
        if on_chunks.is_chunked(X):
            return on_chunks.fit(self, X, sample_weight)
        return super().fit(X, sample_weight=sample_weight)

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X, y=None, sample_weight=None):
        """Add rows to the running means: each goes to the nearest centre of its time, and centres become means of all.

        The first call chooses the start from its rows; after ``fit``, the fitted centres are the start. ``labels_`` and
        ``inertia_`` are those of the rows just given, by the centres before them; ``counts_`` and ``sums_`` hold the
        weight and the sum of all rows of each cluster.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)
        y : ignored
        sample_weight : array of shape (n_samples,), optional

        Returns
        -------
        self
        """
        return on_chunks.partial_fit(self, X, sample_weight)

    def _run(self, X, weight, random_state, on_iteration) -> Result:
        centers = self._start(X, weight, random_state)
        if self.algorithm == "learned":
            network = checkpoints.load(learned.SHIPPED[10])
            centers = learned.run_layers(network, X, centers, weight, self._device()).cpu().numpy()
        loop = {
            "sample_weight": weight,
            "max_iter": self.max_iter,
            "tol": self._absolute_tol(X, weight),
            "on_iteration": on_iteration,
        }
        if self.engine == "literal":
            return literal.run(_dense(X), centers, TABLE["lloyd"], **loop)
        if self._chosen_engine(X) == "lazy":
            return lazy.run(X, centers, n_threads=self._n_threads(), **loop)
        return fused.run(X, centers, self._variant, Settings(), device=self._device(), **loop)

    def _chosen_engine(self, X) -> str:
        suits = not sparse.issparse(X) and self._device().type == "cpu"
        if self.engine == "lazy" and not suits:
            raise ValueError("engine='lazy' takes dense rows on the CPU: use engine='auto', which is fused elsewhere.")
        return ("lazy" if suits else "fused") if self.engine == "auto" else self.engine

    def _keep(self, result: Result, kept) -> None:
        super()._keep(result, kept)
        self.__dict__.pop("trajectory_", None)
        if self.engine == "literal":
            self.trajectory_ = result.trajectory


def _dense(X):
    return X.toarray() if sparse.issparse(X) else X
