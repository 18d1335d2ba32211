"""Clusterers of other packages that several benchmarks compare with, and the scores of partitions."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from sklearn.cluster import HDBSCAN, AgglomerativeClustering, KMeans, SpectralClustering
from sklearn.metrics import silhouette_score
from sklearn.mixture import GaussianMixture

from coterie_research.benchmarks.harness import Row, installed

SEARCHED = (*range(1, 17), 20, 25, 32, 40, 50)  # numbers of clusters that methods try which are not given one
SILHOUETTE_ROWS = 2_000
SPECTRAL_ROWS = 5_000
RESAMPLES = 2_000
BINS = 10


def kmeans(X: np.ndarray, k: int, n_init: int = 10) -> np.ndarray:
    return KMeans(k, n_init=n_init, random_state=0).fit_predict(X)


def genie(X: np.ndarray, k: int) -> np.ndarray:
    from genieclust import Genie

    wide = np.column_stack([X, np.zeros(len(X))]) if X.shape[1] == 1 else X  # it refuses one column
    try:
        return Genie(n_clusters=k).fit_predict(wide)
    except RuntimeError:  # its spanning tree fails on some sets of rows that coincide
        apart = wide + 1e-9 * wide.std() * np.random.default_rng(0).normal(size=wide.shape)
        return Genie(n_clusters=k).fit_predict(apart)


def spectral(X: np.ndarray, k: int) -> np.ndarray:
    """On at most 5,000 rows; others take the label of the nearest of these."""
    rows = np.sort(np.random.default_rng(0).permutation(len(X))[:SPECTRAL_ROWS])
    model = SpectralClustering(k, affinity="nearest_neighbors", n_neighbors=min(10, len(rows)), random_state=0)
    labels = model.fit_predict(X[rows])
    if len(rows) == len(X):
        return labels
    from sklearn.neighbors import KNeighborsClassifier

    return KNeighborsClassifier(1).fit(X[rows], labels).predict(X)


def hdbscan(X: np.ndarray, least: int = 5) -> np.ndarray:
    return HDBSCAN(min_cluster_size=least, copy=True).fit_predict(X)


def best_mixture(X: np.ndarray, numbers: Iterable[int], **settings: Any) -> GaussianMixture:
    """Full covariances, and the number of components of least BIC."""
    return min((GaussianMixture(k, random_state=0, **settings).fit(X) for k in numbers), key=lambda fit: fit.bic(X))


def best_kmeans(X: np.ndarray, numbers: Iterable[int], n_init: int) -> np.ndarray:
    """The number of clusters of largest silhouette."""

    def silhouette(labels: np.ndarray) -> float:
        rows = SILHOUETTE_ROWS if len(X) > SILHOUETTE_ROWS else None
        return silhouette_score(X, labels, sample_size=rows, random_state=0)

    return max((labels for k in numbers if (labels := kmeans(X, k, n_init)).max() > 0), key=silhouette)


def searched(X: np.ndarray, least: int) -> list[int]:
    return [k for k in SEARCHED if least <= k <= len(X) // 3]


GIVEN: dict[str, Callable[[np.ndarray, int], np.ndarray]] = {
    "k-means": kmeans,
    "GMM": lambda X, k: GaussianMixture(k, random_state=0).fit(X).predict(X),
    "Ward": lambda X, k: AgglomerativeClustering(k).fit_predict(X),
    "spectral": spectral,
    "HDBSCAN": lambda X, k: hdbscan(X),
    "Genie": genie,
}
UNKNOWN: dict[str, Callable[[np.ndarray, int], np.ndarray]] = {  # which do not read the number
    "GMM + BIC": lambda X, k: best_mixture(X, searched(X, 1)).predict(X),
    "k-means + silhouette": lambda X, k: best_kmeans(X, searched(X, 2), n_init=3),
    "HDBSCAN": lambda X, k: hdbscan(X),
}


def compared(given: Sequence[str] = tuple(GIVEN)) -> dict[str, dict[str, Callable[[np.ndarray, int], np.ndarray]]]:
    """The methods of both questions as functions of rows and number."""
    known = {name: GIVEN[name] for name in given if name != "Genie" or installed("genieclust")}
    return {"given": known, "unknown": UNKNOWN}


# --- what rows say together -------------------------------------------------------------------------------


def number_of_clusters(labels: np.ndarray) -> int:
    """Without noise, which is negative."""
    return len(np.unique(labels[labels >= 0]))


def interval(gaps: Sequence[float] | np.ndarray) -> list[float]:
    """The mean of paired differences, and its 95% bootstrap interval."""
    gaps = np.asarray(gaps, dtype=float)
    drawn = np.random.default_rng(0).integers(len(gaps), size=(RESAMPLES, len(gaps)))
    low, high = np.quantile(gaps[drawn].mean(axis=1), [0.025, 0.975])
    return [float(gaps.mean()), float(low), float(high)]


def binned(p: np.ndarray, right: np.ndarray) -> list[list[float]]:
    """For every tenth of probability: how many, the sum of their probabilities, and how many are right."""
    place = np.minimum((p * BINS).astype(int), BINS - 1)
    columns = [np.bincount(place, weights, minlength=BINS) for weights in (np.ones(len(p)), p, right.astype(float))]
    return np.stack(columns, axis=1).round(4).tolist()


def grouped(rows: list[Row], entry: str = "group") -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row[entry], []).append(row)
    return groups


def means(rows: list[Row], question: str) -> dict[str, dict[str, float]]:
    """Method -> means of all its figures over the sets on which it was run, and how well it finds their number."""
    found = {}
    for name in rows[0][question]:
        members = [row for row in rows if name in row[question]]
        cells = [row[question][name] for row in members]
        found[name] = {key: float(np.mean([cell[key] for cell in cells])) for key in cells[0] if key != "k"}
        found[name]["sets"] = len(members)
        if "k" in cells[0]:
            truth = np.array([row["k"] for row in members])
            off = np.array([cell["k"] for cell in cells]) - truth
            found[name] |= {
                "exact": float(np.mean(off == 0)),
                "within_one": float(np.mean(np.abs(off) <= 1)),
                "k_error": float(np.mean(np.abs(off))),
            }
            if (truth == 1).any():
                found[name]["single_recall"] = float(np.mean(off[truth == 1] == 0))
    return found


def differences(rows: list[Row], question: str, ours: str) -> dict[str, list[float]]:
    """Other method -> mean of our ARI less its ARI on the same sets, and a 95% bootstrap interval."""
    found = {}
    for name in (name for name in rows[0][question] if name != ours):
        both = [row[question] for row in rows if name in row[question]]
        found[name] = interval([cells[ours]["ari"] - cells[name]["ari"] for cells in both])
    return found


def told(less: list[float]) -> str:
    return "{:+.3f} [{:+.3f}, {:+.3f}]".format(*less)
