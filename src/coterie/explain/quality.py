"""How reliable the clusters are: silhouettes, memberships, fits to subsamples and with other numbers of clusters."""

import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score, silhouette_samples, silhouette_score

from coterie.estimators.capabilities import given_count, has_parameter, is_edited, start_was_given
from coterie.selection import Choice, stratified_sample
from coterie.tabular.clustered_table import ClusteredTable

SILHOUETTE_ROWS = 2_000
REFIT_ROWS = 10_000
SUBSAMPLE = 0.8  # share of the rows of a further fit
OTHER_K_ROWS = 2_000


@dataclass(frozen=True)
class Silhouettes:
    """Silhouettes of a sample of rows, their mean (clusters weighted by their true size), and numbers per cluster."""

    rows: np.ndarray
    values: np.ndarray
    mean: float
    by_cluster: dict[int, tuple[float, float, int]]  # mean, share of negative values, nearest other cluster

    @property
    def words(self) -> str:
        """The separation of the clusters after Kaufman and Rousseeuw (1990), of the mean as it is printed."""
        mean = round(self.mean, 2)
        return "clear" if mean >= 0.7 else "reasonable" if mean >= 0.5 else "weak" if mean >= 0.25 else "hardly any"


@dataclass(frozen=True)
class Stability:
    """How well the clusters recur in fits to random subsamples of the rows.

    ``agreement`` has one adjusted Rand index per subsample, between the clusters of that fit and the clusters of all
    rows, on the rows of the subsample. ``recovery`` is the mean over the subsamples of the largest Jaccard index of a
    cluster with a cluster of the subsample (Hennig 2007).
    """

    agreement: list[float]
    recovery: dict[int, float]
    rows: int  # of a subsample

    @property
    def mean(self) -> float:
        return float(np.mean(self.agreement))

    @property
    def words(self) -> str:
        mean = round(self.mean, 2)
        steps = ((0.95, "stable"), (0.8, "mostly stable"), (0.5, "partly stable"))
        return next((words for least, words in steps if mean >= least), "unstable")


@dataclass(frozen=True)
class OtherCounts:
    """The scores of other numbers of clusters, and the best one."""

    ks: list[int]
    scores: list[float]
    chosen: int
    best: int
    criterion: str
    note: str


def silhouettes(clustered: ClusteredTable) -> Silhouettes | None:
    """Silhouettes of at most 2,000 rows; None if there are fewer than two clusters."""
    kept = np.flatnonzero(clustered.labels >= 0)
    rows = kept[stratified_sample(clustered.labels[kept], SILHOUETTE_ROWS)]
    labels = clustered.labels[rows]
    if not 2 <= len(np.unique(labels)) < len(rows):
        return None
    metric = "cosine" if clustered.spherical else "euclidean"
    values = silhouette_samples(clustered.space[rows], labels, metric=metric)
    sizes = clustered.sizes
    by_cluster, mean = {}, 0.0
    distance = np.linalg.norm(clustered.centers[:, None] - clustered.centers[None], axis=2)
    distance[:, sizes == 0] = np.inf
    np.fill_diagonal(distance, np.inf)
    for j in np.unique(labels).tolist():
        own = values[labels == j]
        by_cluster[j] = (float(own.mean()), float((own < 0).mean()), int(distance[j].argmin()))
        mean += float(own.mean()) * sizes[j] / sizes.sum()
    return Silhouettes(rows, values, mean, by_cluster)


def memberships(clustered: ClusteredTable, count: int = 20_000) -> tuple[np.ndarray, np.ndarray] | None:
    """(rows, probabilities) of a sample, if the estimator has ``predict_proba``."""
    if clustered.k < 2:
        return None
    rows = stratified_sample(clustered.labels, count)
    shares = clustered.probabilities(rows)
    return None if shares is None else (rows, shares)


def stability(clustered: ClusteredTable, refits: int = 5, seconds: float = 3.0, seed: int = 0) -> Stability | str:
    """Fits to random subsamples of 80% of the rows (of at most 10,000), as many as time permits; or why there are none.

    Other random seeds would say nothing about an estimator that divides one group in the same way every time.
    """
    if clustered.k < 2:
        return "There is one cluster, so there is nothing that could change."
    if is_edited(clustered.estimator):
        return (
            "The clusters were edited or continue those of an earlier model, so fits to other rows say little of them."
        )
    rng = np.random.default_rng(seed)
    rows = stratified_sample(clustered.labels, REFIT_ROWS, seed)
    size = max(2, round(SUBSAMPLE * len(rows)))
    agreement: list[float] = []
    recovery: dict[int, list[float]] = {}
    end = time.perf_counter() + seconds
    for _ in range(refits):
        begun = time.perf_counter()
        part = np.sort(rng.choice(rows, size, replace=False))
        other = _fit_again(clustered, {}, part)
        if other is None:
            return "The estimator could not be fitted to a sample of the rows."
        own, found = clustered.labels[part], np.asarray(other.labels_)
        agreement.append(float(adjusted_rand_score(own, found)))
        for j in np.unique(own[own >= 0]).tolist():
            recovery.setdefault(j, []).append(_best_jaccard(own == j, found))
        now = time.perf_counter()
        if now + (now - begun) > end:
            break
    return Stability(agreement, {j: float(np.mean(each)) for j, each in sorted(recovery.items())}, size)


def other_counts(clustered: ClusteredTable, choice: Choice | None = None, seconds: float = 2.5) -> OtherCounts | None:
    """The choice that was made, or silhouettes of similar numbers of clusters on a sample of rows."""
    if choice is not None:
        tried = [one for one in choice.candidates if np.isfinite(one.score)]
        ks, found = [one.k for one in tried], [one.score for one in tried]
        if choice.k not in ks or len(ks) < 2:
            return None
        note = f"All numbers from {ks[0]} to {ks[-1]} were tried; {choice.criterion} selected {choice.k}."
        return OtherCounts(ks, found, choice.k, choice.k, choice.criterion, note)
    given = given_count(clustered.estimator)
    if given is None or given < 2 or start_was_given(clustered.estimator):
        return None
    rows = stratified_sample(clustered.labels, OTHER_K_ROWS)
    space = clustered.space[rows]
    metric = "cosine" if clustered.spherical else "euclidean"
    end = time.perf_counter() + seconds
    scores: dict[int, float] = {}
    near = [given, given + 1, given - 1, given // 2, given // 4, given + 2, given - 2, 2 * given]
    for k in dict.fromkeys(k for k in near if k >= 2):
        if k >= len(rows) or (scores and time.perf_counter() > end):
            break
        wanted: dict[str, Any] = {"n_clusters": k, "random_state": 0, "n_init": 3}
        settings = {name: value for name, value in wanted.items() if has_parameter(clustered.estimator, name)}
        other = _fit_again(clustered, settings, rows)
        labels = np.full(len(rows), -1) if other is None else np.asarray(other.labels_)
        kept = labels >= 0
        if 2 <= len(np.unique(labels[kept])) < kept.sum():
            scores[k] = float(silhouette_score(space[kept], labels[kept], metric=metric))
    if given not in scores or len(scores) < 2:
        return None
    ks = sorted(scores)
    best = max(ks, key=lambda k: (round(scores[k], 6), -k))
    note = f"{len(rows):,} rows were clustered with {', '.join(map(str, ks[:-1]))} and {ks[-1]} clusters."
    return OtherCounts(ks, [scores[k] for k in ks], given, best, "silhouette", note)


def _fit_again(clustered: ClusteredTable, settings: dict[str, Any], rows: np.ndarray) -> Any:
    """The estimator fitted to some rows with other settings; None if it cannot be fitted to them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            estimator = clone(clustered.estimator).set_params(**settings)
            if getattr(estimator, "engine", None) == "literal":
                estimator.set_params(engine="fused")  # the same result, faster
            return estimator.fit(clustered.input(rows))
        except ValueError:
            return None


def _best_jaccard(own: np.ndarray, labels: np.ndarray) -> float:
    """The largest Jaccard index of this cluster with a cluster of another fit."""
    if not (labels >= 0).any():
        return 0.0
    inside = np.bincount(labels[own & (labels >= 0)], minlength=int(labels.max()) + 1)
    sizes = np.bincount(labels[labels >= 0], minlength=len(inside))
    return float((inside / (own.sum() + sizes - inside)).max())
