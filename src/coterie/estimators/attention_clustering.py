"""Any row of the family of algorithms."""

from numbers import Integral, Real
from typing import ClassVar

from sklearn.utils._param_validation import Interval, StrOptions, validate_parameter_constraints

from coterie.estimators.base import SIZES_CONSTRAINTS, CenterClusterer
from coterie.kmeans.algorithm import Algorithm
from coterie.kmeans.family import TABLE

SETTINGS: dict = {
    "gamma": [StrOptions({"scale"}), Interval(Real, 0, None, closed="neither")],
    "keep": [Interval(Real, 0, 1, closed="right")],
    "top": [Interval(Integral, 1, None, closed="left")],
    "delta": [Interval(Real, 0, None, closed="left")],
    **SIZES_CONSTRAINTS,
}


class AttentionClustering(CenterClusterer):
    """Any algorithm of the k-means family, by its name in Table 1 of Clarkson et al. (2025).

    This estimator is meant for researchers. The combinations that the paper leaves to the reader are included. The
    estimators with names of their own, such as :class:`KMeans` and :class:`TrimmedKMeans`, are rows of the same table
    with more convenient parameters.

    Parameters
    ----------
    algorithm : str, default="lloyd"
        The row: "lloyd", "soft", "trimmed", "robust-softmax", "robust-sparsemax", "robust-topk", "medoids", "balanced"
        or "balanced-soft", in Euclidean form or with the suffix "/dot", "/spherical" or "/spherical-layernorm".
    <n_clusters>
    engine : {"auto", "fused", "literal"}, default="auto"
        "literal" multiplies the matrices of the transformer and keeps ``trajectory_`` (at most 20,000 rows). "fused"
        leaves out the self-attention that cancels. "auto" is the fastest that suits the data. All give the same result.
    settings : dict or None, default=None
        Settings of the row, of which those that are not given have their defaults:

        - "gamma" (float or "scale", default "scale"), the inverse temperature of soft and robust rows. "scale" derives
          it from the mean squared distance of the points to the nearest starting centre.
        - "keep" (float in (0, 1], default 0.95), the share of each cluster that trimmed rows keep.
        - "top" (int, default 50), the number of points that a centre takes into account in top-k rows.
        - "sizes" ("balanced" or (min, max)), the fewest and the most rows of a cluster, as in :class:`KMeans`, in any
          row of the table; "balanced" by default in the rows of that name. Soft rows bound the sums of shares.
        - "delta" (float, default 10.0), the gap of medoid rows: points of other clusters score 2 ``delta`` lower.
    <init, n_init>
    max_iter : int, default=100
        Maximum number of iterations of a run. A run that reaches it raises a ``ConvergenceWarning``.
    <tol, device, n_jobs, random_state, verbose>

    Attributes
    ----------
    cluster_centers_ : array of shape (n_clusters, n_features)
        The centres.
    labels_ : int32 array of shape (n_samples,)
        The cluster of every row, or -1 for an outlier of a trimmed row.
    inertia_ : float
        The objective of the row.
    gamma_ : float
        The inverse temperature that was used. Only for soft and robust rows.
    weights_ : array of shape (n_clusters,)
        The weights of the clusters, all equal. Only for soft rows.
    threshold_ : array of shape (n_clusters,)
        The largest cost that was kept, or -1 if the cluster has no rows. Only for trimmed rows.
    <n_iter_, converged_, n_clusters_, n_features_in_, feature_names_in_, trajectory_>

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import AttentionClustering
    >>> X = np.array([[0.0], [0.1], [0.2], [10.0], [10.1], [10.2]])
    >>> AttentionClustering("robust-topk", n_clusters=2, settings={"top": 2}, random_state=0).fit(X).labels_
    array([0, 0, 0, 1, 1, 1], dtype=int32)
    """

    _parameter_constraints: ClassVar[dict] = {
        **CenterClusterer._parameter_constraints,
        "algorithm": [str],
        "engine": [StrOptions({"auto", "fused", "literal"})],
        "settings": [dict, None],
    }

    def __init__(
        self,
        algorithm="lloyd",
        n_clusters=8,
        *,
        engine="auto",
        settings=None,
        init="k-means++",
        n_init="auto",
        max_iter=100,
        tol=1e-4,
        device=None,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self._set(n_clusters, init, n_init, max_iter, tol, device, n_jobs, random_state, verbose)
        self.algorithm = algorithm
        self.engine = engine
        self.settings = settings

    def _algorithm(self) -> Algorithm:
        if self.algorithm not in TABLE:
            raise ValueError(f"algorithm={self.algorithm!r} is not a row of the table: use one of {', '.join(TABLE)}.")
        given = self.settings or {}
        if unknown := sorted(set(given) - set(SETTINGS)):
            raise ValueError(f"{unknown[0]!r} is not a setting of a row: use {', '.join(SETTINGS)}.")
        validate_parameter_constraints(SETTINGS, given, caller_name="AttentionClustering.settings")
        given = {name: value for name, value in given.items() if name != "sizes" and value != "scale"}
        algorithm = Algorithm(TABLE[self.algorithm], **{"gamma": None, "keep": 0.95, **given})
        return algorithm.with_sizes((self.settings or {}).get("sizes"))
