"""Soft k-means."""

from numbers import Real
from typing import ClassVar

import numpy as np
import torch
from sklearn.utils._param_validation import Interval, StrOptions

from coterie.distributed import is_dask
from coterie.estimators import on_dask
from coterie.estimators.base import CenterClusterer
from coterie.kmeans import fused
from coterie.kmeans.engine import Centers
from coterie.kmeans.family import VARIANTS
from coterie.kmeans.result import Result
from coterie.kmeans.weights import Settings


class SoftKMeans(CenterClusterer):
    """Soft k-means: every point belongs to every cluster by a share (document 002, Algorithm 2).

    Shares are softmax(-gamma ‖x - c‖²). With ``mixing_weights=True`` the clusters' weights are estimated too and their
    logarithms added to the scores: EM for a mixture of spherical Gaussians with the known variance 1/(2 gamma).

    Parameters
    ----------
    n_clusters : int, default=4
    gamma : float or "scale", default="scale"
        Inverse temperature. "scale" is n_features/2 over the mean squared distance of the points to the nearest
        starting centre, the value that a spherical Gaussian of that size has; scaling X scales the centres.
    mixing_weights : bool, default=False
    init, n_init, max_iter, tol, device, random_state, verbose
        As for :class:`KMeans`.

    Attributes
    ----------
    cluster_centers_ : array of shape (n_clusters, n_features)
    weights_ : array of shape (n_clusters,)
        The clusters' mixing weights; all equal unless ``mixing_weights``.
    gamma_ : float
        The inverse temperature that was used.
    labels_ : int32 array of shape (n_samples,)
        The cluster with the largest share.
    inertia_ : float
        Sum of squared distances, each counted by its share.
    n_iter_ : int
    """

    _variant = VARIANTS["soft"]
    _takes_dask = True

    _parameter_constraints: ClassVar[dict] = {
        **CenterClusterer._parameter_constraints,
        "gamma": [StrOptions({"scale"}), Interval(Real, 0, None, closed="neither")],
        "mixing_weights": ["boolean"],
    }
    del _parameter_constraints["n_jobs"]

    def __init__(
        self,
        n_clusters=4,
        *,
        gamma="scale",
        mixing_weights=False,
        init="k-means++",
        n_init="auto",
        max_iter=300,
        tol=1e-4,
        device=None,
        random_state=None,
        verbose=0,
    ):
        self.n_clusters = n_clusters
        self.gamma = gamma
        self.mixing_weights = mixing_weights
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def _run(self, X, weight, random_state, on_iteration) -> Result:
        centers = self._start(X, weight, random_state)
        self.gamma_ = scaled_gamma(self._fused(X, weight), centers, self.gamma, X.shape[1] / 2)
        uniform = np.full(self.n_clusters, 1.0 / self.n_clusters)
        return fused.run(
            X,
            centers,
            self._variant,
            Settings(gamma=self.gamma_),
            mixing_weights=uniform if self.mixing_weights else None,
            sample_weight=weight,
            max_iter=self.max_iter,
            tol=self._absolute_tol(X, weight),
            device=self._device(),
            on_iteration=on_iteration,
        )

    def _keep(self, result: Result, kept) -> None:
        super()._keep(result, kept)
        equal = np.full(self.n_clusters, 1.0 / self.n_clusters)
        self.weights_ = equal if result.weights is None else result.weights

    def _shares(self, X) -> np.ndarray:
        engine = self._fused(X, settings=Settings(gamma=self.gamma_))
        device = engine.rows.device
        places = torch.as_tensor(self.cluster_centers_, dtype=engine.rows.dtype, device=device)
        state = Centers(places, torch.as_tensor(self.weights_, device=device))
        return torch.cat([engine.shares(block, state)[0] for block in engine.rows.blocks(len(places))]).cpu().numpy()

    def _labels(self, X) -> np.ndarray:
        return self._shares(X).argmax(axis=1).astype(np.int32)

    def predict_proba(self, X):
        """Share of every row in every cluster; rows sum to one. Shape (n_samples, n_clusters)."""
        if is_dask(X):
            return on_dask.per_cluster(self, X, "predict_proba")
        return self._shares(self._checked_new(X))


def scaled_gamma(start: fused.Fused, centers: np.ndarray, gamma, constant: float) -> float:
    """``gamma`` itself, or for "scale" the constant over the mean squared distance to the nearest starting centre."""
    if gamma != "scale":
        return float(gamma)
    with torch.no_grad():
        places = torch.as_tensor(centers, dtype=start.rows.dtype, device=start.rows.device)
        _, cost = start.choose(places)
    mean = float((start.weight @ cost) / start.weight.sum())
    return constant / mean if mean > 0 else 1.0
