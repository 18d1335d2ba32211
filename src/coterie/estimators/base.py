"""What the center-based estimators share: fit, predict, transform and score around one :class:`Algorithm`."""

import warnings
from abc import abstractmethod
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from coterie.em import Iteration
from coterie.estimators.clusterer import Clusterer
from coterie.estimators.in_blocks import InBlocks, light, per_row, rows_in
from coterie.estimators.progress import CallbackSupportMixin, watching
from coterie.estimators.sources import RowsInBlocks, RowsInMemory, Source
from coterie.estimators.validation import check_device, check_sized_rows, check_weights, is_nearest
from coterie.kmeans.algorithm import Algorithm
from coterie.kmeans.iteration import Result
from coterie.kmeans.scaling import exponent_of, scaled, scaled_algorithm
from coterie.kmeans.sphere import on_sphere

# Compiled kernels and torch are imported where they are used: importing an estimator stays light.

SIZES_CONSTRAINTS = {"sizes": [StrOptions({"balanced"}), tuple, list, None]}
INIT_CONSTRAINTS = [StrOptions({"k-means++", "random", "spectral"}), callable, "array-like"]
ROUNDING = 1e-6  # relative difference of two objectives that counts as none: the first of such runs is kept


class CenterClusterer(CallbackSupportMixin, Clusterer):
    """Base class of the estimators with k centres. A subclass turns its parameters into an :class:`Algorithm`.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
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
    sizes : "balanced", tuple (min, max) or None, default=None
        The fewest and the most rows of a cluster; None in the tuple is no bound, and "balanced" is n_samples divided by
        n_clusters, rounded down and up. All rows together are then assigned at the least total cost within the bounds
        (an exact optimal transport). New rows are assigned one by one, by least cost + price with the prices of the
        fit, so that the bounds need not hold for them. It needs all rows in memory and does not support
        ``sample_weight``.
    random_state : int, RandomState or None, default=None
        Seed or generator of the random starts. Pass an int for reproducible results.
    verbose : int, default=0
        1 shows a progress bar on standard error, 2 prints one line per iteration.

    Attributes
    ----------
    n_iter_ : int
        Number of iterations of the run that was kept.
    converged_ : bool
        Whether that run stopped by itself, before ``max_iter``.
    n_clusters_ : int
        Number of clusters that have at least one row.
    engine_info_ : str
        How the fit was computed: by array operations if the table is small, or by the lazy engine with the vector width
        of the processor. Not set by the other engines.
    trajectory_ : list of (centers, assignments)
        The centres and assignments after every layer. Only with ``engine="literal"``.
    prices_ : array of shape (n_clusters,)
        What the cluster adds to the cost of a row, so that sizes are within their bounds. Only with ``sizes``.
    """

    _takes_sparse: ClassVar[bool] = False
    _takes_blocks: ClassVar[bool] = True  # chunks of files and Dask collections

    _parameter_constraints: ClassVar[dict] = {
        **Clusterer._common_constraints,
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "init": INIT_CONSTRAINTS,
        "n_init": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_clusters=8,
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
        self._set(n_clusters, init, n_init, max_iter, tol, device, n_jobs, random_state, verbose)

    def _set(self, n_clusters, init, n_init, max_iter, tol, device, n_jobs, random_state, verbose) -> None:
        """Store the parameters that all members have."""
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @abstractmethod
    def _algorithm(self) -> Algorithm:
        """The parameters as one value, which engines, chunks, Dask and reports read."""

    def _fitted_algorithm(self) -> Algorithm:
        """The same with the inverse temperature and the prices of the fit."""
        return replace(self._algorithm(), gamma=getattr(self, "gamma_", 1.0), prices=getattr(self, "prices_", None))

    # --- fit ------------------------------------------------------------------------------------------------

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Fit the centres to the data.

        Parameters
        ----------
        X : array, DataFrame, Dask array or DataFrame, CSR matrix, path, or ``coterie.distributed.chunks.Chunks``
            Rows to cluster, of shape (n_samples, n_features). CSR matrices are accepted by :class:`KMeans` and
            :class:`SphericalKMeans`. A path is that of a Parquet or NPY file, which is read in chunks once per
            iteration and need not fit into memory; its starting centres are computed from a sample of at least 50,000
            distinct rows, or from all of them if there are fewer. :class:`KMedoids` accepts arrays and DataFrames only.
        y : ignored
            Present for API consistency.
        sample_weight : array of shape (n_samples,), default=None
            How often each row counts. A row of weight 2 is equivalent to two copies of the row; a row of weight 0 is
            ignored. None gives all rows the weight 1. Not supported for files and chunks.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        rows = rows_in(X, self, sample_weight)
        return self._fit((RowsInBlocks if isinstance(rows, InBlocks) else RowsInMemory)(self, rows, sample_weight))

    def _fit(self, source: Source):
        """Perform the runs and keep the best one: the first whose criterion none of the others clearly undercuts."""
        self._forget()
        n_init = self._n_runs()
        random_state = check_random_state(self.random_state)
        best, lowest = None, np.inf
        with source.opened(), watching(self, source.X, n_init, self.max_iter) as watch:
            for result in source.runs(n_init, random_state, watch):
                criterion = source.criterion(result) if n_init > 1 else 0.0
                if best is None or criterion < lowest * (1 - ROUNDING):
                    best, lowest = result, criterion
            assert best is not None
            self._keep(source.finished(best), source.kept)
            if hasattr(self, "partial_fit"):
                self.counts_ = source.counts(best)
            self.labels_ = source.labels(best)
            watch.close(vars(self))
        return self

    def _run(self, X, start, weight, algorithm: Algorithm, tol: float, random_state, on_iteration) -> Result:
        """One run in memory from one start."""
        from coterie.kmeans import engines

        return engines.run(
            X,
            start,
            algorithm,
            engine=getattr(self, "engine", "auto"),
            device=self._device(),
            sample_weight=weight,
            max_iter=self.max_iter,
            tol=tol,
            n_threads=self._n_threads(),
            on_iteration=on_iteration,
        )

    def _n_runs(self) -> int:
        given = not isinstance(self.init, str) and not callable(self.init)
        if self.n_init == "auto":
            return 10 if not given and self.init == "random" else 1
        if given and self.n_init > 1:
            warnings.warn(
                f"n_init={self.n_init} is ignored because init is an array of centres: {type(self).__name__} performs "
                "one run.",
                RuntimeWarning,
                stacklevel=4,
            )
            return 1
        return self.n_init

    def _require_plain_fit(self, what: str) -> None:
        """Raise ValueError for parameters that need all rows in memory; ``what`` names the data."""
        if not self._takes_blocks:
            raise ValueError(f"{type(self).__name__} needs all rows in memory: pass an array or a sample of the rows.")
        if self._algorithm().variant.sized:
            raise ValueError(
                f"{what} cannot be clustered with bounds on sizes: pass an array, or a sample of the rows."
            )
        if getattr(self, "engine", "auto") == "literal":
            raise ValueError(f"{what} cannot be clustered with engine='literal': use engine='auto'.")

    def _n_threads(self) -> int | None:
        jobs = getattr(self, "n_jobs", None)
        return None if jobs is None or jobs < 0 else jobs

    def _device(self) -> str:
        return check_device(getattr(self, "device", None))

    def _forget(self) -> None:
        """Drop attributes of an earlier fit that this one may not set."""
        for name in ("trajectory_", "engine_info_", "threshold_", "prices_", "sums_", "counts_"):
            self.__dict__.pop(name, None)

    def _keep(self, result: Result, kept: np.ndarray) -> None:
        """Set the fitted attributes. ``kept``: the rows of X that took part."""
        algorithm = self._algorithm()
        k = len(result.centers)
        self.cluster_centers_ = result.centers
        self.inertia_ = result.inertia
        self.n_iter_ = result.n_iter
        self.converged_ = result.converged
        self._n_features_out = k
        self.n_clusters_ = result.n_clusters
        if algorithm.uses_gamma:
            self.gamma_ = result.gamma
        if algorithm.variant.soft:
            self.weights_ = np.full(k, 1.0 / k) if result.weights is None else result.weights
        if result.limits is not None:
            self.threshold_ = np.maximum(result.limits, -1.0)  # finite, so that the fit can be saved
        if result.prices is not None:
            self.prices_ = result.prices
        if result.engine is not None:
            self.engine_info_ = result.engine
        if result.trajectory:
            self.trajectory_ = result.trajectory
        self._warn(algorithm)

    def _warn(self, algorithm: Algorithm) -> None:
        if not self.converged_ and self.n_iter_ >= self.max_iter and not algorithm.draws:
            warnings.warn(
                f"{type(self).__name__} did not converge in max_iter={self.max_iter} iterations: increase max_iter or "
                "tol.",
                ConvergenceWarning,
                stacklevel=5,
            )
        if not algorithm.variant.soft and self.n_clusters_ < self.n_clusters:
            warnings.warn(
                f"The number of distinct clusters, {self.n_clusters_}, is less than n_clusters={self.n_clusters}: X "
                "may have duplicate rows.",
                ConvergenceWarning,
                stacklevel=5,
            )

    def _attributes_during_fit(self, iteration: Iteration) -> dict[str, Any]:
        """The attributes that a callback needs to reconstruct the estimator after an iteration."""
        places = np.asarray(iteration.state.places)
        attributes = {"cluster_centers_": places, "n_iter_": iteration.number, "_n_features_out": len(places)}
        limits = getattr(iteration.expectation, "limits", None)
        return attributes if limits is None else {**attributes, "threshold_": np.asarray(limits)}

    # --- what the centres say about rows --------------------------------------------------------------------

    def _labels(self, X, largest: float | None = None, *, nearest: bool = False) -> np.ndarray:
        from coterie.kmeans import engines

        X, centers, algorithm, exponent = self._at_ordinary_size(X, largest)
        limits = np.ldexp(self.threshold_, -2 * exponent) if hasattr(self, "threshold_") and not nearest else None
        weights = getattr(self, "weights_", None)
        return engines.labels(X, centers, algorithm, weights, limits, self._device(), self._n_threads())

    def _at_ordinary_size(self, X, largest: float | None = None) -> tuple[Any, np.ndarray, Algorithm, int]:
        """Rows, centres and the fitted algorithm divided by 2 to some power, and that power."""
        exponent = exponent_of(X, self.cluster_centers_, largest=largest)
        algorithm = scaled_algorithm(self._fitted_algorithm(), -exponent)
        return scaled(X, -exponent), scaled(self.cluster_centers_, -exponent), algorithm, exponent

    def _checked_new(self, X):
        return self._checked_sized(X)[0]

    def _checked_sized(self, X) -> tuple[Any, float | None]:
        """New rows, and their largest absolute value if it is known."""
        check_is_fitted(self, "cluster_centers_")
        X, largest = check_sized_rows(self, X, reset=False, accept_sparse=self._takes_sparse)
        return (on_sphere(X), None) if self._algorithm().spherical else (X, largest)

    @per_row
    def predict(self, X, *, assign=None):
        """Assign every row to its cluster.

        <assign>
        Returns
        -------
        labels : int32 array of shape (n_samples,)
            The index of the cluster of every row, or -1 for an outlier of a trimmed fit.
        """
        return self._labels(*self._checked_sized(X), nearest=is_nearest(assign))

    def fit_predict(self, X, y=None, sample_weight=None):
        """Fit the centres and return ``labels_``.

        Parameters
        ----------
        X : array, DataFrame, Dask array or DataFrame, CSR matrix, path, or ``coterie.distributed.chunks.Chunks``
            Rows to cluster, as in :meth:`fit`.
        y : labels of some rows, or ignored
            As in :meth:`fit`.
        sample_weight : array of shape (n_samples,), default=None
            How often each row counts.

        Returns
        -------
        labels : int32 array of shape (n_samples,)
            The cluster of every row, or -1 for an outlier of a trimmed fit.
        """
        return self.fit(X, y, sample_weight=sample_weight).labels_

    @per_row
    def transform(self, X):
        """Compute the distance of every row to every centre.

        Returns
        -------
        distances : array of shape (n_samples, n_clusters)
            Euclidean distances; for spherical algorithms, 1 - cosine.
        """
        from coterie.kmeans import engines

        X, centers, algorithm, exponent = self._at_ordinary_size(*self._checked_sized(X))
        return scaled(engines.distances(X, centers, algorithm, self._device(), self._n_threads()), exponent)

    def score(self, X, y=None, sample_weight=None):
        """Compute the negative objective on X. Larger is better; outliers of a trimmed fit do not count.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Rows to evaluate.
        y : ignored
            Present for API consistency.
        sample_weight : array of shape (n_samples,), default=None
            How often each row counts.

        Returns
        -------
        score : float
            The negative sum of the costs of the rows at their centres.
        """
        X = rows_in(X, self, sample_weight)
        if isinstance(X, InBlocks):
            X.check(self, reset=False)
            return float(X.total(_score_block, light(self)) or 0.0)
        from coterie.kmeans import engines

        X, largest = self._checked_sized(X)
        weight = check_weights(X, sample_weight)
        X, centers, algorithm, exponent = self._at_ordinary_size(X, largest)
        chosen, cost = engines.choose(X, centers, algorithm, self._device(), self._n_threads())
        cost = scaled(cost, 2 * exponent)
        if hasattr(self, "threshold_"):
            cost = np.where(cost <= self.threshold_[chosen], cost, 0.0)
        # not by BLAS, whose threads wait for each other while other programs use the processor
        return -float(cost.sum() if weight is None else np.einsum("n,n->", weight, cost))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._takes_sparse
        return tags


def _score_block(block, estimator) -> float:
    return estimator.score(block.X, sample_weight=block.weight)


def algorithm_of(estimator: Any) -> Algorithm | None:
    """The algorithm of a fitted estimator of the family or of scikit-learn's k-means; None for other estimators."""
    if isinstance(estimator, CenterClusterer):
        return estimator._fitted_algorithm()
    from sklearn.cluster import KMeans, MiniBatchKMeans

    return Algorithm() if isinstance(estimator, KMeans | MiniBatchKMeans) else None
