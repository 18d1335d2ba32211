"""The number of clusters: one fit per number in a range, and a criterion that chooses among the fits."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import calinski_harabasz_score, davies_bouldin_score, silhouette_samples
from sklearn.preprocessing import normalize

from coterie.estimators.capabilities import has_parameter, on_sphere, scales_itself
from coterie.geometry.spread import principal_axes

CRITERIA = {
    "silhouette": "how much closer a row is to its own cluster than to the next one; the highest is chosen",
    "calinski-harabasz": "variance between clusters divided by variance within clusters; the highest is chosen",
    "davies-bouldin": "how similar each cluster is to the most similar other cluster; the lowest is chosen",
    "gap": "inertia compared with data without clusters; the smallest number within one standard error; can be 1",
}
SAMPLE_ROWS = 5_000
LEAST_ROWS = 20  # of every cluster in a sample
FEW_SHARE = 1e-3  # of a large table: a cluster with fewer rows is a handful of outliers, for which no number is chosen
GAP_REFERENCES = 5
VARIANCE_SHARE = 0.95  # a column with this share determines the clusters almost alone
SPREAD_RATIO = 30.0  # a column that is narrower by this factor has little influence


@dataclass(frozen=True)
class Candidate:
    """One number of clusters that was tried, with its scores.

    ``score_error`` is the standard error of the gap statistic, and 0 for the other criteria.
    """

    k: int
    inertia: float
    score: float
    score_error: float = 0.0


@dataclass(frozen=True)
class Choice:
    """The candidates in increasing order of ``k``, the chosen number of clusters, and its fitted estimator."""

    criterion: str
    candidates: tuple[Candidate, ...]
    k: int
    estimator: Any

    @property
    def at_edge(self) -> bool:
        """Whether the largest number that was tried was chosen, so that a larger one might be better."""
        return len(self.candidates) > 1 and self.k == self.candidates[-1].k

    def document(self) -> dict[str, Any]:
        """The same as JSON, without the estimator."""
        tried = [
            {"n_clusters": one.k, "inertia": one.inertia, "score": one.score if np.isfinite(one.score) else None}
            for one in self.candidates
        ]
        return {"criterion": self.criterion, "n_clusters": self.k, "at_edge": self.at_edge, "candidates": tried}


@dataclass(frozen=True)
class Uneven:
    """Columns whose scales differ so much that the scales determine the clusters."""

    widest: int
    narrowest: int
    share: float  # of the total variance that the widest column has
    ratio: float  # of their standard deviations

    @property
    def decides_alone(self) -> bool:
        return self.share >= VARIANCE_SHARE

    @property
    def shown_share(self) -> str:
        return f"{min(self.share, 0.999):.1%}"


def varying_columns(X: np.ndarray) -> np.ndarray:
    """Indices of the columns that are not constant (up to rounding errors)."""
    return np.flatnonzero(X.std(axis=0, dtype=np.float64) > 1e-12 * np.maximum(np.abs(X).max(axis=0), 1e-300))


def uneven_columns(estimator: Any, X: np.ndarray) -> Uneven | None:
    """The columns to warn about, if the clusters of an estimator that was fitted on X depend on their scales."""
    return uneven_spreads(estimator, X.std(axis=0, dtype=np.float64), varying_columns(X))


def uneven_spreads(estimator: Any, spread: np.ndarray, varying: np.ndarray) -> Uneven | None:
    """The same from the standard deviations of the columns."""
    if len(varying) < 2 or on_sphere(estimator) or scales_itself(estimator):
        return None
    order = varying[np.argsort(-spread[varying])]
    share = float(spread[order[0]] ** 2 / (spread[varying] ** 2).sum())
    ratio = float(spread[order[0]] / spread[order[-1]])
    if share < VARIANCE_SHARE and ratio < SPREAD_RATIO:
        return None
    return Uneven(int(order[0]), int(order[-1]), share, ratio)


def choose_k(
    estimator: Any,
    X: Any,
    ks: Iterable[int],
    *,
    criterion: str = "silhouette",
    random_state: int | None = 0,
    on_candidate: Callable[[Candidate], Any] | None = None,
) -> Choice:
    """Fit one copy of ``estimator`` per number of clusters and choose the best fit by a criterion.

    Parameters
    ----------
    estimator : estimator with a parameter ``n_clusters``
        It is cloned; the estimator itself is not changed.
    X : array or DataFrame of numbers, shape (n_samples, n_features)
        Every fit uses all rows. Silhouette, Davies-Bouldin and gap are computed on at most 5,000 of them.
    ks : iterable of int
        The numbers of clusters to try. Those that bounds on sizes (``sizes``) make impossible are left out.
    criterion : {"silhouette", "calinski-harabasz", "davies-bouldin", "gap"}
        ``CRITERIA`` describes them. Rows that the estimator labels as outliers (-1) are excluded from the scores. The
        gap statistic (Tibshirani, Walther and Hastie 2001) compares with five samples that are drawn uniformly from the
        bounding box along the principal axes.
    random_state : int or None
        Seed of the sample of rows and of the reference data of the gap statistic.
    on_candidate : callable, optional
        Called with every :class:`Candidate` as soon as it is fitted.

    Returns
    -------
    Choice
    """
    ks = _numbers(ks)
    values = np.asarray(X)
    _check(estimator, values, ks, criterion)
    ks = _within_sizes(estimator, len(values), ks)
    rng = np.random.default_rng(random_state)
    seed = int(rng.integers(2**31))
    rows = stratified_sample(np.zeros(len(X), dtype=int), SAMPLE_ROWS, seed)
    references = _references(values[rows], rng) if criterion == "gap" else []

    candidates, fitted = [], {}
    for k in ks:
        model = clone(estimator).set_params(n_clusters=k).fit(X)
        if criterion == "gap":
            score, error = _gap(estimator, values[rows], references, k)
        else:
            score, error = score_of(criterion, values, np.asarray(model.labels_), seed, on_sphere(model)), 0.0
        candidate = Candidate(k, inertia(model, values), score, error)
        candidates.append(candidate)
        fitted[k] = model
        if on_candidate is not None:
            on_candidate(candidate)
    chosen = _best(criterion, candidates)
    return Choice(criterion, tuple(candidates), chosen, fitted[chosen])


def check_criterion(criterion: str) -> None:
    """Raise an error if there is no such criterion."""
    if criterion not in CRITERIA:
        raise ValueError(f"criterion must be one of {', '.join(CRITERIA)}; got {criterion!r}.")


def _numbers(ks: Any) -> list[int]:
    numbers: list[Any] = list(ks) if isinstance(ks, Iterable) else [None]
    if not all(isinstance(k, int | np.integer) for k in numbers):
        raise TypeError(f"ks must contain numbers of clusters, for example range(2, 13); got {ks!r}.")
    return sorted(set(numbers))


def _check(estimator: Any, X: np.ndarray, ks: list[int], criterion: str) -> None:
    check_criterion(criterion)
    if not isinstance(estimator, type) and not has_parameter(estimator, "n_clusters"):
        raise ValueError(
            f"{type(estimator).__name__} has no parameter n_clusters: pass an estimator that is told the number of "
            "clusters, such as KMeans."
        )
    if not ks:
        raise ValueError("ks contains no number of clusters: give at least one, for example range(2, 13).")
    if ks[0] < 1:
        raise ValueError(f"A number of clusters must be at least 1; got {ks[0]}.")
    if criterion == "gap" and not np.isfinite(X.astype(np.float64)).all():
        raise ValueError("The gap criterion needs complete rows, but X has missing or infinite values.")
    if criterion == "gap" and on_sphere(estimator):
        raise ValueError(
            "The gap criterion needs Euclidean distances: choose another criterion for spherical clusters."
        )
    if criterion != "gap" and ks[0] < 2:
        raise ValueError(
            f"{criterion!r} compares clusters with each other: start at 2, or use 'gap', which can choose 1."
        )
    if criterion != "gap" and ks[-1] >= len(X):
        raise ValueError(f"{criterion!r} needs fewer clusters than the {len(X)} rows: stop at {len(X) - 1}.")


def _within_sizes(estimator: Any, n: int, ks: list[int]) -> list[int]:
    """The numbers of clusters that bounds on sizes allow; if they allow none, the error of the first."""
    if not hasattr(estimator, "_algorithm"):
        return ks
    possible, refused = [], []
    for k in ks:
        try:
            estimator._algorithm().check_sizes(n, k)
            possible.append(k)
        except ValueError as error:
            refused.append(error)
    if not possible:
        raise refused[0]
    return possible


def inertia(estimator: Any, X: np.ndarray) -> float:
    """The objective of an estimator fitted on X: ``inertia_``, or the sum of squared distances to the centres."""
    if hasattr(estimator, "inertia_"):
        return float(estimator.inertia_)
    return float(((X - estimator.cluster_centers_[estimator.labels_]) ** 2).sum())


def score_of(criterion: str, X: np.ndarray, labels: np.ndarray, seed: int, sphere: bool) -> float:
    """The score of the clusters; the worst possible score if there are fewer than two that count."""
    size_K = np.bincount(labels[labels >= 0], minlength=1)
    few = FEW_SHARE * len(X) if len(X) > SAMPLE_ROWS else 0
    kept = np.flatnonzero((labels >= 0) & (size_K > few)[labels])
    if criterion != "calinski-harabasz":
        kept = kept[stratified_sample(labels[kept], SAMPLE_ROWS, seed, LEAST_ROWS)]
    X, labels = X[kept], labels[kept]
    found = len(np.unique(labels))
    if not 2 <= found < len(X):
        return {"silhouette": -1.0, "calinski-harabasz": 0.0, "davies-bouldin": float("inf")}[criterion]
    if sphere:
        X = normalize(X)
    if criterion == "silhouette":
        width_N = silhouette_samples(X, labels, metric="cosine" if sphere else "euclidean")
        rows_per_drawn_K = size_K / np.maximum(np.bincount(labels, minlength=len(size_K)), 1)
        return float(np.average(width_N, weights=rows_per_drawn_K[labels]))
    if criterion == "calinski-harabasz":
        return float(calinski_harabasz_score(X, labels))
    return float(davies_bouldin_score(X, labels))


def stratified_sample(labels: np.ndarray, count: int, seed: int = 0, least: int = LEAST_ROWS) -> np.ndarray:
    """Numbers of about ``count`` rows, with at least ``least`` rows of every cluster that has so many."""
    if len(labels) <= count:
        return np.arange(len(labels))
    rng = np.random.default_rng(seed)
    rows = [rng.choice(len(labels), count, replace=False)]
    for label in np.unique(labels):
        own = np.flatnonzero(labels == label)
        if len(own) * count < 4 * least * len(labels):
            rows.append(rng.permutation(own)[:least])
    return np.unique(np.concatenate(rows))


def _references(X: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """Data without clusters: uniform in the bounding box of X along its principal axes."""
    mean = X.mean(axis=0)
    axes, _ = principal_axes(X - mean)
    turned = (X - mean) @ axes.T
    low, high = turned.min(axis=0), turned.max(axis=0)
    return [
        (rng.uniform(low, high, size=turned.shape) @ axes + mean).astype(X.dtype, copy=False)
        for _ in range(GAP_REFERENCES)
    ]


def _gap(estimator: Any, X: np.ndarray, references: list[np.ndarray], k: int) -> tuple[float, float]:
    """The difference between the log inertia of the references and of X, and its standard error."""

    def log_inertia(data: np.ndarray) -> float:
        found = inertia(clone(estimator).set_params(n_clusters=k).fit(data), data)
        return float(np.log(max(found, np.finfo(np.float64).tiny)))

    expected = np.array([log_inertia(reference) for reference in references])
    return float(expected.mean() - log_inertia(X)), float(expected.std() * np.sqrt(1 + 1 / len(expected)))


def _best(criterion: str, candidates: list[Candidate]) -> int:
    if criterion == "davies-bouldin":
        return min(candidates, key=lambda c: c.score).k
    if criterion != "gap":
        return max(candidates, key=lambda c: c.score).k
    for one, following in pairwise(candidates):
        if one.score >= following.score - following.score_error:
            return one.k
    return candidates[-1].k
