"""ZeroShotClusterer compared with other methods, with and without the number of clusters.

Command: ``coterie bench zeroshot``. The zero-shot networks get every table as it is. The other methods get real tables
standardised, and the other sets as they are. Points that a set marks as noise are clustered but not scored; HDBSCAN's
noise and the outliers of the networks count as one cluster of their own for the scores, and not for the number of
clusters. Of the draws of a family,
all are measured for the networks and the first 50 for the other methods. A network reads a set once: labels for the
given number of clusters are cut from the same hierarchy (:meth:`coterie.ZeroShotClusterer.cut`), which gives the same
as a fit with that number.

Every measured set is written to ``rows.jsonl`` at once. If the command is interrupted, it continues from there.
"""

import json
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.cluster import HDBSCAN, AgglomerativeClustering, KMeans, SpectralClustering
from sklearn.metrics import adjusted_rand_score, silhouette_score
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import StandardScaler

from coterie import checkpoints, threads
from coterie.estimators import ZeroShotClusterer
from coterie.files import replacing
from coterie.metrics import normalised_accuracy
from coterie_research.benchmarks import _zeroshot_pictures as pictures
from coterie_research.benchmarks._zeroshot_sets import LabelledSet, all_sets
from coterie_research.benchmarks._zeroshot_summary import binned, calibration, differences, markdown, summary

OURS = "coterie"
# name in the tables -> network; the first is compared with all others, so that a new network names the previous one
NETWORKS = {OURS: "zeroshot-3", "second network": "zeroshot-2"}
SEARCHED = (*range(1, 17), 20, 25, 32, 40, 50)  # numbers of clusters that the other methods try
SILHOUETTE_ROWS = 2_000
SPECTRAL_ROWS = 5_000
STANDARDISED = ("tables", "seen")


def gaussian_mixture(X: np.ndarray, k: int) -> GaussianMixture:
    return GaussianMixture(k, random_state=0).fit(X)


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


def _numbers(X: np.ndarray, least: int) -> list[int]:
    return [k for k in SEARCHED if least <= k <= len(X) // 3]


def gmm_bic(X: np.ndarray) -> np.ndarray:
    """The number of components of least BIC."""
    return min((gaussian_mixture(X, k) for k in _numbers(X, 1)), key=lambda fit: fit.bic(X)).predict(X)


def kmeans_silhouette(X: np.ndarray) -> np.ndarray:
    """The number of clusters of largest silhouette, from 2."""

    def silhouette(labels: np.ndarray) -> float:
        rows = SILHOUETTE_ROWS if len(X) > SILHOUETTE_ROWS else None
        return silhouette_score(X, labels, sample_size=rows, random_state=0)

    found = (kmeans(X, k, n_init=3) for k in _numbers(X, 2))
    return max((labels for labels in found if labels.max() > 0), key=silhouette)


def kmeans(X: np.ndarray, k: int, n_init: int = 10) -> np.ndarray:
    return KMeans(k, n_init=n_init, random_state=0).fit_predict(X)


GIVEN: dict[str, Callable[[np.ndarray, int], np.ndarray]] = {
    "k-means": kmeans,
    "GMM": lambda X, k: gaussian_mixture(X, k).predict(X),
    "Ward": lambda X, k: AgglomerativeClustering(k).fit_predict(X),
    "spectral": spectral,
    "HDBSCAN": lambda X, k: HDBSCAN(copy=True).fit_predict(X),
    "Genie": genie,
}
UNKNOWN: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "GMM + BIC": gmm_bic,
    "k-means + silhouette": kmeans_silhouette,
    "HDBSCAN": lambda X: HDBSCAN(copy=True).fit_predict(X),
}


def score(one: LabelledSet, found: np.ndarray, seconds: float) -> dict[str, Any]:
    inside = one.labels > 0
    return {
        "ari": adjusted_rand_score(one.labels[inside], found[inside]),
        "nca": normalised_accuracy(one.labels[inside], found[inside]),
        "k": len(np.unique(found[found >= 0])),
        "seconds": seconds,
    }


def reliability(one: LabelledSet, model: ZeroShotClusterer) -> dict[str, Any]:
    """What the model says of its own answer, beside the truth."""
    truth, inside = one.labels[model.context_indices_], one.labels[model.context_indices_] > 0
    same = (truth[:, None] == truth)[np.ix_(inside, inside)]
    upper = np.triu_indices(inside.sum(), 1)
    scored = one.labels > 0
    true_pairs = (one.labels[:, None] == one.labels) & scored if len(one.labels) <= 2_000 else None
    row: dict[str, Any] = {
        "k_proba": model.n_clusters_proba_.round(5).tolist(),
        "expected_ari": model.expected_ari_,
        "affinity": binned(model.affinity_[np.ix_(inside, inside)][upper].astype(float), same[upper]),
        "certainty": binned(np.zeros(0), np.zeros(0)),
        "noise": [int((model.outliers_ & ~scored).sum()), int(model.outliers_.sum()), int((~scored).sum())],
    }
    if true_pairs is not None:  # share of a row's cluster that truly is of its own
        mates = (model.labels_[:, None] == model.labels_) & scored & ~model.outliers_
        np.fill_diagonal(mates, False)
        rows = scored & ~model.outliers_ & mates.any(axis=1)
        realised = (mates & true_pairs)[rows].sum(axis=1) / mates[rows].sum(axis=1)
        row["certainty"] = binned(np.clip(model.certainty_[rows], 0, 1), realised)
    return row


def measure(one: LabelledSet) -> dict[str, Any]:
    """All methods on one set."""
    X = StandardScaler().fit_transform(one.X) if one.group in STANDARDISED else one.X
    k = one.n_clusters

    row: dict[str, Any] = {"group": one.group, "name": one.name, "n": len(X), "d": X.shape[1], "k": k}
    row |= {"given": {}, "unknown": {}}
    for name, network in NETWORKS.items():
        began = time.perf_counter()
        model = ZeroShotClusterer(network=network, random_state=0).fit(one.X)
        seconds = time.perf_counter() - began
        if name == OURS:
            row |= reliability(one, model)
        row["given"][name] = score(one, model.cut(one.X, k), seconds)
        row["unknown"][name] = score(one, model.labels_, seconds)
    if not one.compared:
        return row
    others: dict[str, dict[str, Callable[[], np.ndarray]]] = {
        "given": {name: partial(method, X, k) for name, method in GIVEN.items()},
        "unknown": {name: partial(method, X) for name, method in UNKNOWN.items()},
    }
    for question, methods in others.items():
        for name, method in methods.items():
            began = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # methods that do not converge
                found = method()
            row[question][name] = score(one, found, time.perf_counter() - began)
    return row


def speed() -> dict[str, float]:
    """Seconds of one fit, after a first one that compiles."""
    rng = np.random.default_rng(0)
    ZeroShotClusterer(random_state=0).fit(rng.normal(size=(100, 8)))
    seconds = {}
    for n in (1_000, 100_000):
        X = rng.normal(size=(n, 8)) + 6 * np.eye(8)[rng.integers(5, size=n)]
        began = time.perf_counter()
        ZeroShotClusterer(random_state=0).fit(X)
        seconds[f"{n} x 8"] = time.perf_counter() - began
    return seconds


def run(quick: bool = False, output: Path = Path("results/zeroshot")) -> dict:
    """Measure everything, write ``zeroshot.json``, ``zeroshot.md`` and the pictures."""
    try:
        import genieclust  # noqa: F401
    except ImportError as error:
        raise ImportError("This benchmark needs the package genieclust: pip install 'coterie[bench]'.") from error
    output = Path(output)
    output.mkdir(parents=True, exist_ok=True)
    sets, result, done = all_sets(quick), {}, []
    seconds = speed()
    with Unfinished(output / "rows.jsonl") as rows:
        for part in parts_of(sets):  # results are on disk while the next part is measured
            done += part
            rows.measure(part)
            result = {
                "command": "coterie bench zeroshot" + (" --quick" if quick else ""),
                "speed": seconds,
                **evaluated([rows.found[one.group, one.name] for one in done]),
                "seconds": rows.seconds,
            }
            with replacing(output / "zeroshot.json") as file:
                file.write_text(json.dumps(result))
            with replacing(output / "zeroshot.md") as file:
                file.write_text(markdown(result))
        pictures.draw_all(result, sets, output)
    return result


def evaluated(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """What the rows say together."""
    return {
        "summary": {question: summary(rows, question) for question in ("given", "unknown")},
        "differences": {question: differences(rows, question, OURS) for question in ("given", "unknown")},
        "calibration": calibration(rows, OURS),
        "rows": rows,
    }


def parts_of(sets: list[LabelledSet]) -> list[list[LabelledSet]]:
    """The fixed sets, the draws that other methods are run on too, and all others."""
    fixed = [one for one in sets if not one.drawn]
    compared = [one for one in sets if one.drawn and one.compared]
    return [part for part in (fixed, compared, [one for one in sets if not one.compared]) if part]


class Unfinished:
    """Measured sets in a file that continues an interrupted run of the same networks, and is removed at the end."""

    def __init__(self, path: Path):
        self.path = path
        self.found: dict[tuple[str, str], dict[str, Any]] = {}
        self.seconds = 0.0
        self._networks = {name: checkpoints.card(network) for name, network in NETWORKS.items()}

    def __enter__(self) -> "Unfinished":
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        if lines and json.loads(lines[0]) == self._networks:
            for row in map(json.loads, lines[1:]):
                self._keep(row)
        else:
            self.path.write_text(json.dumps(self._networks) + "\n")
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        if kind is None:
            self.path.unlink()

    def measure(self, sets: list[LabelledSet]) -> None:
        """Measure those of the sets that were not measured before."""
        missing = [one for one in sets if (one.group, one.name) not in self.found]
        with open(self.path, "a") as file:
            tasks = (delayed(_timed)(one) for one in missing)
            for row in Parallel(n_jobs=threads.count(), return_as="generator")(tasks):
                file.write(json.dumps(row) + "\n")
                file.flush()
                self._keep(row)

    def _keep(self, row: dict[str, Any]) -> None:
        self.found[row["group"], row["name"]] = row
        self.seconds += row["seconds"]


def _timed(one: LabelledSet) -> dict[str, Any]:
    began = time.perf_counter()
    return measure(one) | {"seconds": time.perf_counter() - began}
