"""How far to trust the clusters: silhouettes, memberships, refits with other seeds, other numbers of clusters."""

import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score, silhouette_samples, silhouette_score

from coterie.reporting.subject import Subject, sample

SILHOUETTE_ROWS = 2_000
REFIT_ROWS = 10_000
OTHER_K_ROWS = 2_000


@dataclass(frozen=True)
class Sureness:
    """Silhouettes of a sample, their mean (each cluster by its true size), and each cluster's numbers."""

    rows: np.ndarray
    values: np.ndarray
    mean: float
    by_cluster: dict[int, tuple[float, float, int]]  # mean, share of negative ones, nearest other cluster


@dataclass(frozen=True)
class Stability:
    """Adjusted Rand indices between this clustering (first) and refits, and how well each cluster was found again."""

    seeds: list[int]
    matrix: np.ndarray
    mean: float
    recovery: dict[int, float]  # mean over the refits of the best Jaccard index
    rows: int


@dataclass(frozen=True)
class OtherCounts:
    """The score of other numbers of clusters, and which of them is best."""

    ks: list[int]
    scores: list[float]
    chosen: int
    best: int
    criterion: str
    note: str


def sureness(subject: Subject) -> Sureness | None:
    """None where there are fewer than two clusters to compare."""
    kept = np.flatnonzero(subject.labels >= 0)
    rows = kept[sample(subject.labels[kept], SILHOUETTE_ROWS)]
    labels = subject.labels[rows]
    if not 2 <= len(np.unique(labels)) < len(rows):
        return None
    metric = "cosine" if subject.spherical else "euclidean"
    values = silhouette_samples(subject.space[rows], labels, metric=metric)
    sizes = subject.sizes
    by_cluster, mean = {}, 0.0
    distance = np.linalg.norm(subject.centers[:, None] - subject.centers[None], axis=2)
    distance[:, sizes == 0] = np.inf
    np.fill_diagonal(distance, np.inf)
    for j in np.unique(labels).tolist():
        own = values[labels == j]
        by_cluster[j] = (float(own.mean()), float((own < 0).mean()), int(distance[j].argmin()))
        mean += float(own.mean()) * sizes[j] / sizes.sum()
    return Sureness(rows, values, mean, by_cluster)


def memberships(subject: Subject, count: int = 20_000) -> tuple[np.ndarray, np.ndarray] | None:
    """(rows, shares) of a sample, where the estimator tells shares."""
    ask = getattr(subject.estimator, "predict_proba", None)
    if ask is None or subject.k < 2:
        return None
    rows = sample(subject.labels, count)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about column names that the plain array does not carry
        return rows, np.asarray(ask(subject.X[rows]))


def stability(subject: Subject, refits: int = 5, seconds: float = 3.0, seed: int = 0) -> Stability | str:
    """Refits with other seeds on at most 10,000 rows, as many as the time allows; or why there are none."""
    if "random_state" not in subject.estimator.get_params():
        return "The estimator takes no random seed: a refit gives the same clusters."
    if not isinstance(subject.estimator.get_params().get("init", ""), str):
        return "The start was given, so that no seed plays a part: a refit gives the same clusters."
    rows = sample(subject.labels, REFIT_ROWS, seed)
    X, own = subject.X[rows], subject.labels[rows]
    found, seeds = [own], []
    end = time.perf_counter() + seconds
    for number in range(refits):
        begun = time.perf_counter()
        other = _again(subject, {"random_state": seed + 1 + number}, X)
        if other is None:
            return "The estimator could not be fitted again to a sample of the rows."
        found.append(np.asarray(other.labels_))
        seeds.append(seed + 1 + number)
        now = time.perf_counter()
        if now + (now - begun) > end:
            break
    matrix = np.array([[adjusted_rand_score(a, b) for b in found] for a in found])
    pairs = matrix[np.triu_indices(len(found), 1)]
    recovery = {
        j: float(np.mean([_best_jaccard(own == j, labels) for labels in found[1:]]))
        for j in np.unique(own[own >= 0]).tolist()
    }
    return Stability(seeds, matrix, float(pairs.mean()), recovery, len(rows))


def other_counts(subject: Subject, choice: Any = None, seconds: float = 2.5) -> OtherCounts | None:
    """The choice that was made, or else silhouettes of near numbers of clusters on a sample; None without K."""
    if choice is not None:
        tried = [one for one in choice.candidates if np.isfinite(one.score)]
        ks, found = [one.k for one in tried], [one.score for one in tried]
        if choice.k not in ks or len(ks) < 2:
            return None
        note = f"Every number from {ks[0]} to {ks[-1]} was tried; {choice.criterion} chose {choice.k}."
        return OtherCounts(ks, found, choice.k, choice.k, choice.criterion, note)
    given = subject.estimator.get_params().get("n_clusters")
    if not isinstance(given, int | np.integer) or given < 2 or not isinstance(
        subject.estimator.get_params().get("init", ""), str
    ):  # fmt: skip
        return None
    given = int(given)
    rows = sample(subject.labels, OTHER_K_ROWS)
    space = subject.space[rows]
    metric = "cosine" if subject.spherical else "euclidean"
    end = time.perf_counter() + seconds
    scores: dict[int, float] = {}
    near = [given, given + 1, given - 1, given // 2, given // 4, given + 2, given - 2, 2 * given]
    for k in dict.fromkeys(k for k in near if k >= 2):
        if k >= len(rows) or (scores and time.perf_counter() > end):
            break
        settings: dict[str, Any] = {"n_clusters": k, "random_state": 0}
        if "n_init" in subject.estimator.get_params():
            settings["n_init"] = 3
        settings = {name: value for name, value in settings.items() if name in subject.estimator.get_params()}
        other = _again(subject, settings, subject.X[rows])
        labels = np.full(len(rows), -1) if other is None else np.asarray(other.labels_)
        kept = labels >= 0
        if 2 <= len(np.unique(labels[kept])) < kept.sum():
            scores[k] = float(silhouette_score(space[kept], labels[kept], metric=metric))
    if given not in scores or len(scores) < 2:
        return None
    ks = sorted(scores)
    best = max(ks, key=lambda k: (round(scores[k], 6), -k))
    note = f"Refitted on {len(rows):,} rows with {', '.join(map(str, ks[:-1]))} and {ks[-1]} clusters."
    return OtherCounts(ks, [scores[k] for k in ks], given, best, "silhouette", note)


def _again(subject: Subject, settings: dict[str, Any], X: np.ndarray) -> Any:
    """The estimator fitted to these rows with other settings; None where it refuses them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            estimator = clone(subject.estimator).set_params(**settings)
            if getattr(estimator, "engine", None) == "literal":
                estimator.set_params(engine="fused")  # the same answer, sooner
            return estimator.fit(X)
        except ValueError:
            return None


def _best_jaccard(own: np.ndarray, labels: np.ndarray) -> float:
    """How well the best cluster of a refit covers this one: rows in both over rows in either."""
    if not (labels >= 0).any():
        return 0.0
    inside = np.bincount(labels[own & (labels >= 0)], minlength=int(labels.max()) + 1)
    sizes = np.bincount(labels[labels >= 0], minlength=len(inside))
    return float((inside / (own.sum() + sizes - inside)).max())
