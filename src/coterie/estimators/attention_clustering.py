"""Any row of the family's table."""

from dataclasses import replace
from numbers import Integral, Real
from typing import ClassVar

import torch
from sklearn.utils._param_validation import Interval, StrOptions

from coterie.estimators.base import CenterClusterer
from coterie.estimators.soft_kmeans import scaled_gamma
from coterie.kmeans import fused, literal
from coterie.kmeans.family import TABLE
from coterie.kmeans.result import Result
from coterie.kmeans.weights import Settings


class AttentionClustering(CenterClusterer):
    """Any row of Table 1 of document 002, its starred combinations included, in either engine.

    It is meant for researchers: the estimators with a name of their own are rows of the same table, with more comfort.

    Parameters
    ----------
    algorithm : str, default="lloyd"
        A row of ``coterie.kmeans.family.TABLE``: "lloyd", "soft", "trimmed", "robust-softmax", "robust-sparsemax",
        "robust-topk" or "medoids", in Euclidean form or with "/dot", "/spherical" or "/spherical-layernorm" behind it.
    n_clusters : int, default=4
    engine : {"fused", "literal"}, default="fused"
        "literal" multiplies the real matrices and keeps the ``trajectory_`` (at most 20,000 rows).
    gamma : float or "scale", default="scale"
        Inverse temperature of soft and robust rows.
    keep : float in (0, 1], default=0.95
        Share of each cluster that trimmed rows keep.
    top : int, default=50
        Points that a centre looks at in top-k rows.
    delta : float, default=10.0
        Sampling gap of medoid rows.
    init, max_iter, tol, random_state
        As for :class:`KMeans`. A layer is an iteration.

    Attributes
    ----------
    cluster_centers_ : array of shape (n_clusters, n_features)
    labels_ : int32 array of shape (n_samples,)
        The nearest centre.
    inertia_ : float
        The row's own objective.
    n_iter_ : int
        Layers.
    trajectory_ : list of (centers, assignments), layer by layer
        Only with ``engine="literal"``.
    """

    _parameter_constraints: ClassVar[dict] = {
        **CenterClusterer._parameter_constraints,
        "algorithm": [StrOptions(set(TABLE))],
        "engine": [StrOptions({"fused", "literal"})],
        "gamma": [StrOptions({"scale"}), Interval(Real, 0, None, closed="neither")],
        "keep": [Interval(Real, 0, 1, closed="right")],
        "top": [Interval(Integral, 1, None, closed="left")],
        "delta": [Interval(Real, 0, None, closed="left")],
    }
    for _name in ("n_init", "device", "n_jobs", "verbose"):
        del _parameter_constraints[_name]

    def __init__(
        self,
        algorithm="lloyd",
        n_clusters=4,
        *,
        engine="fused",
        gamma="scale",
        keep=0.95,
        top=50,
        delta=10.0,
        init="k-means++",
        max_iter=100,
        tol=1e-4,
        random_state=None,
    ):
        self.algorithm = algorithm
        self.n_clusters = n_clusters
        self.engine = engine
        self.gamma = gamma
        self.keep = keep
        self.top = top
        self.delta = delta
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    @property
    def _variant(self):  # type: ignore[override]
        return TABLE[self.algorithm].variant

    @property
    def _spherical(self):  # type: ignore[override]
        return TABLE[self.algorithm].form.spherical

    def _n_runs(self) -> int:
        return 1

    def _run(self, X, weight, random_state, on_iteration) -> Result:
        row = TABLE[self.algorithm]
        centers = self._start(X, weight, random_state)
        constant = X.shape[1] / 2 if row.variant.name == "soft" else 1.0
        settings = Settings(
            gamma=scaled_gamma(self._fused(X, weight), centers, self.gamma, constant),
            keep=self.keep,
            top=self.top,
            delta=self.delta,
            generator=torch.Generator().manual_seed(int(random_state.randint(2**31))),
        )
        loop = {
            "sample_weight": weight,
            "max_iter": self.max_iter,
            "tol": self._absolute_tol(X, weight),
            "on_iteration": on_iteration,
        }
        if self.engine == "literal":
            result = literal.run(X, centers, row, settings, **loop)
        else:
            result = fused.run(X, centers, row.variant, settings, spherical=self._spherical, **loop)
        return replace(result, labels=self._choose(X, result.centers)[0])

    def _keep(self, result: Result, kept) -> None:
        super()._keep(result, kept)
        self.__dict__.pop("trajectory_", None)
        if self.engine == "literal":
            self.trajectory_ = result.trajectory
