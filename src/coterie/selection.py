"""How many clusters: one fit for each K of a range, and a named criterion that chooses among them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import calinski_harabasz_score, davies_bouldin_score, silhouette_score
from sklearn.preprocessing import normalize

from coterie.estimators.base import algorithm_of

CRITERIA = {
    "silhouette": "how much nearer a point is to its own cluster than to the next; highest wins",
    "calinski-harabasz": "variance between clusters over variance within; highest wins",
    "davies-bouldin": "how alike each cluster is to its nearest neighbour; lowest wins",
    "gap": "inertia against that of structureless data; smallest K within one standard error; can answer 1",
}
SAMPLE_ROWS = 5_000
GAP_REFERENCES = 10
VARIANCE_SHARE = 0.95  # a column that holds so much decides nearly alone
SPREAD_RATIO = 30.0  # beside a column that is so much wider another hardly counts


@dataclass(frozen=True)
class Candidate:
    """One K of the range. ``score_error`` is the standard error of a gap, 0 for the other criteria."""

    k: int
    inertia: float
    score: float
    score_error: float = 0.0


@dataclass(frozen=True)
class Choice:
    """The candidates in the order of K, the one that was chosen, and its fitted estimator."""

    criterion: str
    candidates: tuple[Candidate, ...]
    k: int
    estimator: Any

    @property
    def at_edge(self) -> bool:
        """Whether the answer is the largest K that was tried, so that a larger one might be better still."""
        return len(self.candidates) > 1 and self.k == self.candidates[-1].k


def scales_itself(estimator: Any) -> bool:
    """Whether the fitted estimator brings the columns to one scale inside."""
    return hasattr(estimator, "encoding_") or getattr(estimator, "likelihood_", None) == "gaussian"


@dataclass(frozen=True)
class Uneven:
    """Columns whose scales differ so much that it decides the clusters."""

    widest: int
    narrowest: int
    share: float  # of all variance that the widest holds
    ratio: float  # of their spreads

    @property
    def decides_alone(self) -> bool:
        return self.share >= VARIANCE_SHARE

    @property
    def shown_share(self) -> str:
        return f"{min(self.share, 0.999):.1%}"


def varying_columns(X: np.ndarray) -> np.ndarray:
    """Indices of the columns that are not constant, up to rounding."""
    return np.flatnonzero(X.std(axis=0, dtype=np.float64) > 1e-12 * np.maximum(np.abs(X).max(axis=0), 1e-300))


def uneven_columns(estimator: Any, X: np.ndarray) -> Uneven | None:
    """What to warn of, for an estimator fitted on X whose distances depend on the columns' scales."""
    varying = varying_columns(X)
    if len(varying) < 2 or on_sphere(estimator) or scales_itself(estimator):
        return None
    spread = X.std(axis=0, dtype=np.float64)
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
    """Fit a copy of ``estimator`` for every K in ``ks`` and choose by ``criterion`` (one of ``CRITERIA``).

    X is an array or a DataFrame of numbers. Each fit sees all of it. Silhouette, Davies-Bouldin and the gap are
    measured on at most 5,000 rows, drawn once with ``random_state``; points that the estimator calls outliers (-1) are
    left out of the scores. The gap statistic (Tibshirani, Walther and Hastie 2001) compares with ten samples drawn
    uniformly from the box of the principal axes.
    """
    ks = sorted(set(ks))
    values = np.asarray(X)
    _check(estimator, values, ks, criterion)
    rng = np.random.default_rng(random_state)
    rows = np.arange(len(X)) if len(X) <= SAMPLE_ROWS else np.sort(rng.choice(len(X), SAMPLE_ROWS, replace=False))
    references = _references(values[rows], rng) if criterion == "gap" else []

    candidates, fitted = [], {}
    for k in ks:
        model = clone(estimator).set_params(n_clusters=k).fit(X)
        if criterion == "gap":
            score, error = _gap(estimator, values[rows], references, k)
        else:
            score, error = _score(criterion, values, np.asarray(model.labels_), rows, on_sphere(model)), 0.0
        candidate = Candidate(k, inertia(model, values), score, error)
        candidates.append(candidate)
        fitted[k] = model
        if on_candidate is not None:
            on_candidate(candidate)
    chosen = _best(criterion, candidates)
    return Choice(criterion, tuple(candidates), chosen, fitted[chosen])


def check_criterion(criterion: str) -> None:
    """Refuse a name that no criterion has."""
    if criterion not in CRITERIA:
        raise ValueError(f"criterion must be one of {', '.join(CRITERIA)}; got {criterion!r}.")


def _check(estimator: Any, X: np.ndarray, ks: list[int], criterion: str) -> None:
    check_criterion(criterion)
    if not ks:
        raise ValueError("No number of clusters to try: give at least one, as in range(2, 13).")
    if ks[0] < 1:
        raise ValueError(f"A number of clusters must be at least 1; got {ks[0]}.")
    if criterion == "gap" and not np.isfinite(X.astype(np.float64)).all():
        raise ValueError("The gap criterion needs complete rows: X has missing or infinite values.")
    if criterion == "gap" and on_sphere(estimator):
        raise ValueError("The gap criterion needs Euclidean distances: choose another one for spherical clusters.")
    if criterion != "gap" and ks[0] < 2:
        raise ValueError(f"{criterion!r} compares clusters: start at 2, or use 'gap', which can answer 1.")
    if criterion != "gap" and ks[-1] >= len(X):
        raise ValueError(f"{criterion!r} needs fewer clusters than the {len(X)} rows: stop at {len(X) - 1}.")


def inertia(estimator: Any, X: np.ndarray) -> float:
    """The objective of an estimator fitted on X: its own, or the squared distances to the clusters' centres."""
    if hasattr(estimator, "inertia_"):
        return float(estimator.inertia_)
    return float(((X - estimator.cluster_centers_[estimator.labels_]) ** 2).sum())


def on_sphere(estimator: Any) -> bool:
    """Whether the estimator compares directions, not places."""
    algorithm = algorithm_of(estimator)
    return algorithm is not None and algorithm.spherical


def _score(criterion: str, X: np.ndarray, labels: np.ndarray, rows: np.ndarray, sphere: bool) -> float:
    """The score of the clusters that were found; the worst possible one if fewer than two of them were."""
    if criterion != "calinski-harabasz":
        X, labels = X[rows], labels[rows]
    kept = labels >= 0
    X, labels = X[kept], labels[kept]
    found = len(np.unique(labels))
    if not 2 <= found < len(X):
        return {"silhouette": -1.0, "calinski-harabasz": 0.0, "davies-bouldin": float("inf")}[criterion]
    if sphere:
        X = normalize(X)
    if criterion == "silhouette":
        return float(silhouette_score(X, labels, metric="cosine" if sphere else "euclidean"))
    if criterion == "calinski-harabasz":
        return float(calinski_harabasz_score(X, labels))
    return float(davies_bouldin_score(X, labels))


def _references(X: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """Structureless data with the extent of X: uniform in the box of its principal axes."""
    mean = X.mean(axis=0)
    _, _, axes = np.linalg.svd(X - mean, full_matrices=False)
    turned = (X - mean) @ axes.T
    low, high = turned.min(axis=0), turned.max(axis=0)
    return [
        (rng.uniform(low, high, size=turned.shape) @ axes + mean).astype(X.dtype, copy=False)
        for _ in range(GAP_REFERENCES)
    ]


def _gap(estimator: Any, X: np.ndarray, references: list[np.ndarray], k: int) -> tuple[float, float]:
    """How far log inertia lies below that of the references, and the standard error of that."""

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
