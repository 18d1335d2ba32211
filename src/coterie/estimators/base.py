"""What the estimators of the constructed family share: fit, predict, transform, score around one engine run."""

from abc import abstractmethod
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import torch
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin, _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, Options, StrOptions
from sklearn.utils.sparsefuncs import mean_variance_axis
from sklearn.utils.validation import check_is_fitted

from coterie import starts
from coterie.distributed import is_dask
from coterie.em import Iteration
from coterie.estimators import on_dask
from coterie.estimators.persistence import SaveMixin
from coterie.estimators.progress import CallbackSupportMixin, watching
from coterie.estimators.validation import check_device, check_enough_rows, check_rows, check_weights
from coterie.kmeans.family import VARIANTS, Variant
from coterie.kmeans.fused import Fused
from coterie.kmeans.lazy import Assigner
from coterie.kmeans.result import Result
from coterie.kmeans.weights import Settings

INIT_CONSTRAINTS = [StrOptions({"k-means++", "random", "spectral"}), callable, "array-like"]


class CenterClusterer(
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    ClusterMixin,
    CallbackSupportMixin,
    SaveMixin,
    BaseEstimator,
):
    """A clusterer with k centres. Subclasses say which variant of the family runs, and with what settings."""

    _variant: ClassVar[Variant] = VARIANTS["lloyd"]
    _spherical: ClassVar[bool] = False
    _takes_sparse: ClassVar[bool] = False
    _takes_dask: ClassVar[bool] = False

    _parameter_constraints: ClassVar[dict] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "init": INIT_CONSTRAINTS,
        "n_init": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "device": [None, str, torch.device],
        "n_jobs": [None, Interval(Integral, 1, None, closed="left"), Options(Integral, {-1})],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Find the centres.

        Parameters
        ----------
        X : array, DataFrame, Dask array or DataFrame, or (where supported) CSR matrix, (n_samples, n_features)
        y : ignored
        sample_weight : array of shape (n_samples,), optional
            How often each row counts. A row of weight 2 is the same as the row twice; a row of weight 0 takes no part.

        Returns
        -------
        self
        """
        if is_dask(X):
            return on_dask.fit(self, X, sample_weight)
        X = check_rows(self, X, reset=True, accept_sparse=self._takes_sparse)
        weight = check_weights(X, sample_weight)
        kept = np.arange(X.shape[0]) if weight is None else np.flatnonzero(weight)
        check_enough_rows(len(kept), self.n_clusters)
        rows = self._on_domain(X)
        if weight is not None and len(kept) < X.shape[0]:
            rows, weight = rows[kept], weight[kept]
        random_state = check_random_state(self.random_state)
        n_init = self._n_runs()
        best, lowest = None, np.inf
        with watching(self, X, n_init, self.max_iter) as watch:
            for number in range(n_init):
                with watch.run(number) as on_iteration:
                    result = self._run(rows, weight, random_state, on_iteration)
                criterion = self._criterion(result, rows, weight) if n_init > 1 else 0.0
                if best is None or criterion < lowest:
                    best, lowest = result, criterion
            assert best is not None
            self._keep(best, kept)
            if len(kept) < X.shape[0]:
                self.labels_ = self._labels(self._on_domain(X))
            watch.close(vars(self))
        return self

    def _criterion(self, result: Result, X, weight) -> float:
        """What the best of several runs has least of."""
        return result.inertia

    @abstractmethod
    def _run(self, X, weight, random_state, on_iteration) -> Result:
        """One run from one start."""

    def _on_domain(self, X):
        """X where the algorithm lives: on the unit sphere, for the spherical ones. A row of zeros stays where it is."""
        if not self._spherical:
            return X
        if sparse.issparse(X):
            length = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).reshape(-1))
            scaled = sparse.diags(1.0 / np.where(length == 0, 1.0, length)) @ X
            return scaled.astype(X.dtype).tocsr()
        length = np.linalg.norm(X, axis=1, keepdims=True)
        return X / np.where(length == 0, X.dtype.type(1), length)

    def _n_runs(self) -> int:
        if self.n_init == "auto":
            return 10 if isinstance(self.init, str) and self.init == "random" else 1
        return 1 if not isinstance(self.init, str) and not callable(self.init) else self.n_init

    def _start(self, X, weight, random_state) -> np.ndarray:
        init = self.init
        if not isinstance(init, str) and not callable(init):
            try:
                init = check_rows(_NoNames(), np.asarray(init), reset=True)
            except ValueError as error:
                message = str(error).replace("Input X", "init").replace("_NoNames", type(self).__name__)
                raise ValueError(f"The array of starting centres cannot be used. {message}") from error
        centers = starts.choose(
            X, self.n_clusters, init, random_state, weight, n_threads=self._n_threads(), trim=self._start_trim()
        )
        return self._on_domain(centers)

    def _start_trim(self) -> float:
        """Share of outliers that the start should reckon with."""
        return 0.0

    def _n_threads(self) -> int | None:
        jobs = getattr(self, "n_jobs", None)
        return None if jobs is None or jobs < 0 else jobs

    def _device(self) -> torch.device:
        return check_device(getattr(self, "device", None))

    def _absolute_tol(self, X, weight) -> float:
        """``tol`` is relative to the mean variance of the columns, as in scikit-learn."""
        if self.tol == 0:
            return 0.0
        if sparse.issparse(X):
            return float(np.mean(mean_variance_axis(X, axis=0, weights=weight)[1])) * self.tol
        mean, sq, total = np.zeros(X.shape[1]), np.zeros(X.shape[1]), 0.0
        for first in range(0, len(X), 65_536):  # in blocks: a copy of X would cost as much memory as X
            block = X[first : first + 65_536].astype(np.float64)
            counts = np.ones(len(block)) if weight is None else weight[first : first + 65_536]
            step, block_mean = counts.sum(), np.average(block, axis=0, weights=counts)
            delta = block_mean - mean
            sq += counts @ (block - block_mean) ** 2 + delta**2 * total * step / (total + step)
            mean += delta * step / (total + step)
            total += step
        return float(np.mean(sq / total)) * self.tol

    def _keep(self, result: Result, kept: np.ndarray) -> None:
        """Set the fitted attributes. ``kept``: the rows of X that took part."""
        self.cluster_centers_ = result.centers
        self.labels_ = result.labels
        self.inertia_ = result.inertia
        self.n_iter_ = result.n_iter
        self._n_features_out = len(result.centers)

    def _attributes_during_fit(self, iteration: Iteration) -> dict[str, Any]:
        """What a callback needs to rebuild the estimator as it stands after an iteration."""
        places = np.asarray(iteration.state.places)
        return {"cluster_centers_": places, "n_iter_": iteration.number, "_n_features_out": len(places)}

    def _assigner(self, X) -> Assigner | None:
        """Bounds for the assignments of hard variants, where the rows are dense and on the CPU."""
        if sparse.issparse(X) or self._device().type != "cpu":
            return None
        return Assigner(X, n_threads=self._n_threads())

    def _fused(self, X, weight=None, settings: Settings | None = None) -> Fused:
        return Fused(
            X,
            self._variant,
            settings or Settings(),
            spherical=self._spherical,
            sample_weight=weight,
            device=self._device(),
        )

    def _choose(self, X, centers: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Every row's nearest centre (by default of the fitted ones) and its cost there."""
        fused = self._fused(X)
        centers = self.cluster_centers_ if centers is None else centers
        with torch.no_grad():
            places = torch.as_tensor(centers, dtype=fused.rows.dtype, device=fused.rows.device)
            labels, cost = fused.choose(places)
        return labels.cpu().numpy().astype(np.int32), cost.cpu().numpy()

    def _labels(self, X) -> np.ndarray:
        return self._choose(X)[0]

    def _checked_new(self, X):
        check_is_fitted(self)
        return self._on_domain(check_rows(self, X, reset=False, accept_sparse=self._takes_sparse))

    def predict(self, X):
        """Nearest centre of every row.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)

        Returns
        -------
        labels : int32 array of shape (n_samples,); for Dask data a lazy Dask array
        """
        if is_dask(X):
            return on_dask.predict(self, X)
        return self._labels(self._checked_new(X))

    def fit_predict(self, X, y=None, sample_weight=None):
        """Fit and return ``labels_``."""
        return self.fit(X, sample_weight=sample_weight).labels_

    def transform(self, X):
        """Distance of every row to every centre (on the sphere: 1 - cosine), shape (n_samples, n_clusters)."""
        if is_dask(X):
            return on_dask.per_cluster(self, X, "transform")
        X = self._checked_new(X)
        fused = self._fused(X)
        centers = torch.as_tensor(self.cluster_centers_, dtype=fused.rows.dtype, device=fused.rows.device)
        distance = fused.cost if self._spherical else fused.rows.distances
        return torch.cat([distance(block, centers) for block in fused.rows.blocks(len(centers))]).cpu().numpy()

    def score(self, X, y=None, sample_weight=None):
        """Minus the objective on X: the higher, the better."""
        if is_dask(X):
            return on_dask.score(self, X, sample_weight)
        X = self._checked_new(X)
        _, cost = self._choose(X)
        weight = check_weights(X, sample_weight)
        return -float(cost.sum() if weight is None else weight @ cost)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._takes_sparse
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class _NoNames(BaseEstimator):
    """Carries no column names: for checking an array of initial centres."""
