"""ZeroShotClusterer beside k-means, Gaussian mixtures, HDBSCAN and Genie, with and without the number of clusters.

Command: ``coterie bench zeroshot``. Ours gets every table as it is. Peers get the real tables standardised, and the
other sets as they are. Points that a set marks as noise are clustered but not scored; HDBSCAN's noise counts as one
cluster of its own for the scores, and not for the number of clusters.
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
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.metrics import adjusted_rand_score, silhouette_score
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import StandardScaler

from coterie.benchmarks import _zeroshot_pictures as pictures
from coterie.benchmarks._zeroshot_sets import LabelledSet, all_sets
from coterie.estimators import ZeroShotClusterer
from coterie.files import replacing
from coterie.metrics import normalised_accuracy

OURS = "coterie"
MOST = 16  # clusters that the searches try
SILHOUETTE_ROWS = 2_000
GROUPS = ("wut", "fcps", "real", "draws")


def gaussian_mixture(X: np.ndarray, k: int) -> GaussianMixture:
    return GaussianMixture(k, random_state=0).fit(X)


def genie(X: np.ndarray, k: int) -> np.ndarray:
    from genieclust import Genie

    wide = np.column_stack([X, np.zeros(len(X))]) if X.shape[1] == 1 else X  # it refuses one column
    return Genie(n_clusters=k).fit_predict(wide)


def gmm_bic(X: np.ndarray) -> np.ndarray:
    """The number of components of least BIC."""
    fits = [gaussian_mixture(X, k) for k in range(1, min(MOST, len(X) // 2) + 1)]
    return min(fits, key=lambda fit: fit.bic(X)).predict(X)


def kmeans_silhouette(X: np.ndarray) -> np.ndarray:
    """The number of clusters of largest silhouette, from 2."""

    def silhouette(labels: np.ndarray) -> float:
        rows = SILHOUETTE_ROWS if len(X) > SILHOUETTE_ROWS else None
        return silhouette_score(X, labels, sample_size=rows, random_state=0)

    return max((kmeans(X, k) for k in range(2, min(MOST, len(X) - 1) + 1)), key=silhouette)


def kmeans(X: np.ndarray, k: int) -> np.ndarray:
    return KMeans(k, n_init=10, random_state=0).fit_predict(X)


GIVEN: dict[str, Callable[[np.ndarray, int], np.ndarray]] = {
    "k-means": kmeans,
    "GMM": lambda X, k: gaussian_mixture(X, k).predict(X),
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


def measure(one: LabelledSet) -> dict[str, Any]:
    """All methods on one set."""
    X = StandardScaler().fit_transform(one.X) if one.group == "real" else one.X
    k = one.n_clusters
    tasks: dict[str, dict[str, Callable[[], Any]]] = {
        "given": {OURS: lambda: ZeroShotClusterer(k).fit(one.X).labels_},
        "unknown": {OURS: lambda: ZeroShotClusterer().fit(one.X)},
    }
    tasks["given"] |= {name: partial(method, X, k) for name, method in GIVEN.items()}
    tasks["unknown"] |= {name: partial(method, X) for name, method in UNKNOWN.items()}
    row: dict[str, Any] = {"group": one.group, "name": one.name, "n": len(X), "d": X.shape[1], "k": k}
    for question, methods in tasks.items():
        row[question] = {}
        for name, method in methods.items():
            began = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # peers that do not converge
                found = method()
            seconds = time.perf_counter() - began
            if isinstance(found, ZeroShotClusterer):
                row["k_proba"] = found.n_clusters_proba_.round(5).tolist()
                found = found.labels_
            row[question][name] = score(one, found, seconds)
    return row


def speed() -> dict[str, float]:
    """Seconds of one fit, after a first one that compiles."""
    rng = np.random.default_rng(0)
    ZeroShotClusterer().fit(rng.normal(size=(100, 8)))
    seconds = {}
    for n in (1_000, 100_000):
        X = rng.normal(size=(n, 8)) + 6 * np.eye(8)[rng.integers(5, size=n)]
        began = time.perf_counter()
        ZeroShotClusterer().fit(X)
        seconds[f"{n} x 8"] = time.perf_counter() - began
    return seconds


def run(quick: bool = False, output: Path = Path("results/zeroshot")) -> dict:
    """Measure everything, write ``zeroshot.json``, ``zeroshot.md`` and the pictures."""
    try:
        import genieclust  # noqa: F401
    except ImportError as error:
        raise ImportError("This benchmark needs the package genieclust: pip install 'coterie[bench]'.") from error
    began = time.perf_counter()
    output = Path(output)
    output.mkdir(parents=True, exist_ok=True)
    seconds, sets, rows, result = speed(), all_sets(quick), [], {}
    tables = sum(one.group != "draws" for one in sets)
    for part in (sets[:tables], sets[tables:]):  # the tables are on disk while the draws are measured
        rows += Parallel(n_jobs=2)(delayed(measure)(one) for one in part)
        result = {
            "command": "coterie bench zeroshot" + (" --quick" if quick else ""),
            "speed": seconds,
            "summary": {question: summary(rows, question) for question in ("given", "unknown")},
            "rows": rows,
            "seconds": time.perf_counter() - began,
        }
        with replacing(output / "zeroshot.json") as file:
            file.write_text(json.dumps(result, indent=1))
        with replacing(output / "zeroshot.md") as file:
            file.write_text(markdown(result))
    pictures.draw_all(result, sets, output)
    return result


def summary(rows: list[dict], question: str) -> dict[str, dict[str, dict[str, float]]]:
    """Group -> method -> means over the sets."""
    groups: dict[str, dict[str, dict[str, float]]] = {}
    for group in GROUPS:
        members = [row for row in rows if row["group"] == group]
        groups[group] = {}
        for name in members[0][question] if members else ():
            found = [row[question][name] for row in members]
            off = np.array([one["k"] - row["k"] for one, row in zip(found, members)])
            groups[group][name] = {
                "ari": float(np.mean([one["ari"] for one in found])),
                "nca": float(np.mean([one["nca"] for one in found])),
                "exact": float(np.mean(off == 0)),
                "within_one": float(np.mean(np.abs(off) <= 1)),
                "k_error": float(np.mean(np.abs(off))),
                "seconds": float(np.mean([one["seconds"] for one in found])),
            }
    return groups


def markdown(result: dict) -> str:
    lines = [
        "# Zero-shot clustering beside its peers",
        "",
        f"`{result['command']}`, {result['seconds']:.0f} s in all.",
        "",
    ]
    times = ", ".join(f"{size.replace(' x ', ' × ')} in {value:.2f} s" for size, value in result["speed"].items())
    lines += [f"One fit: {times}.", ""]
    for question, title in (("given", "The number of clusters is given"), ("unknown", "It is not")):
        groups = {name: group for name, group in result["summary"][question].items() if group}
        methods = list(next(iter(groups.values())))
        lines += [f"## {title}", "", "Mean ARI (NCA):", ""]
        lines += ["| method | " + " | ".join(groups) + " |", "|---|" + "---|" * len(groups)]
        for name in methods:
            cells = [f"{group[name]['ari']:.3f} ({group[name]['nca']:.3f})" for group in groups.values()]
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
        if question == "unknown":
            lines += ["", "The number of clusters: exact, within one, mean absolute error:", ""]
            lines += ["| method | " + " | ".join(groups) + " |", "|---|" + "---|" * len(groups)]
            for name in methods:
                cells = [
                    f"{g[name]['exact']:.0%}, {g[name]['within_one']:.0%}, {g[name]['k_error']:.1f}"
                    for g in groups.values()
                ]
                lines.append(f"| {name} | " + " | ".join(cells) + " |")
        lines += ["", "Mean seconds:", "", "| method | " + " | ".join(groups) + " |", "|---|" + "---|" * len(groups)]
        for name in methods:
            lines.append(
                f"| {name} | " + " | ".join(f"{group[name]['seconds']:.2f}" for group in groups.values()) + " |"
            )
        lines.append("")
    return "\n".join(lines + _set_table(result["rows"]))


def _set_table(rows: list[dict]) -> list[str]:
    rows = [row for row in rows if row["group"] != "draws"]
    given, unknown = list(rows[0]["given"]), list(rows[0]["unknown"])
    lines = ["## Every set: ARI with the number given, then ARI (number found) without", ""]
    lines += [
        "| set | n × d | K | " + " | ".join(given + unknown) + " |",
        "|---|" + "---|" * (2 + len(given + unknown)),
    ]
    for row in rows:
        cells = [f"{row['given'][name]['ari']:.2f}" for name in given]
        cells += [f"{row['unknown'][name]['ari']:.2f} ({row['unknown'][name]['k']})" for name in unknown]
        lines.append(
            f"| {row['group']} {row['name']} | {row['n']} × {row['d']} | {row['k']} | " + " | ".join(cells) + " |"
        )
    return [*lines, ""]
