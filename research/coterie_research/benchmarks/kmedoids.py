"""KMedoids compared with FasterPAM (package ``kmedoids``) on squared distances of ten data sets, equal restarts."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.metrics import pairwise_distances
from sklearn.preprocessing import StandardScaler

from coterie.estimators import KMedoids
from coterie_research.benchmarks.harness import Benchmark, Cell, Row


def _table(name: str) -> np.ndarray:
    return StandardScaler().fit_transform(getattr(datasets, f"load_{name}")().data)


SETS: dict[str, tuple[Callable[[], Any], int]] = {  # rows and number of clusters; nothing is downloaded
    "iris": (lambda: _table("iris"), 3),
    "wine": (lambda: _table("wine"), 3),
    "breast cancer": (lambda: _table("breast_cancer"), 5),
    "digits": (lambda: datasets.load_digits().data, 10),
    "diabetes": (lambda: _table("diabetes"), 6),
    "blobs": (lambda: datasets.make_blobs(1000, 8, centers=15, random_state=0)[0], 15),
    "moons": (lambda: datasets.make_moons(800, noise=0.08, random_state=0)[0], 12),
    "circles": (lambda: datasets.make_circles(800, noise=0.05, factor=0.5, random_state=0)[0], 10),
    "swiss roll": (lambda: datasets.make_swiss_roll(1000, random_state=0)[0], 20),
    "uniform": (lambda: np.random.default_rng(0).uniform(size=(1000, 4)), 25),
}


def measure(name: str, restarts: int) -> Row:
    """Ratios are of the mean inertia, KMedoids over FasterPAM."""
    import kmedoids

    make, k = SETS[name]
    X = np.ascontiguousarray(make(), dtype=np.float64)
    clock = time.perf_counter()
    ours = np.array([KMedoids(k, random_state=seed).fit(X).inertia_ for seed in range(restarts)])
    middle = time.perf_counter()
    distances = pairwise_distances(X, metric="sqeuclidean")
    theirs = np.array([kmedoids.fasterpam(distances, k, random_state=seed).loss for seed in range(restarts)])
    end = time.perf_counter()
    return {
        "data": name,
        "n": len(X),
        "k": k,
        "inertia": ours.mean(),
        "fasterpam": theirs.mean(),
        "ratio": ours.mean() / theirs.mean(),
        "wins": int(np.sum(ours < theirs * (1 - 1e-9))),
        "ties": int(np.sum(np.abs(ours / theirs - 1) <= 1e-9)),
        "runs": restarts,
        "seconds": middle - clock,
        "fasterpam_seconds": end - middle,
    }


def summary(rows: list[Row]) -> Row:
    counts = {name: sum(row[name] for row in rows) for name in ("wins", "ties", "runs")}
    return {"mean_ratio": float(np.mean([row["ratio"] for row in rows])), **counts}


def _restarts(quick: bool) -> int:
    return 2 if quick else 10


BENCHMARK = Benchmark(
    name="kmedoids",
    title="KMedoids compared with FasterPAM",
    folder="kmedoids-bench",
    needs=("kmedoids",),
    settings=lambda quick: {"restarts": _restarts(quick)},
    cells=lambda quick: [Cell(name, partial(measure, name, _restarts(quick))) for name in SETS],
    summary=summary,
    intro="{restarts} restarts of each method with squared Euclidean distances.",
    columns={
        "data": "{data}",
        "n": "{n}",
        "k": "{k}",
        "inertia ÷ inertia of FasterPAM": "{ratio:.4f}",
        "wins": "{wins}",
        "ties": "{ties}",
        "seconds": "{seconds:.2f}",
        "seconds of FasterPAM": "{fasterpam_seconds:.2f}",
    },
    page=lambda record: [
        "The mean ratio is {mean_ratio:.4f}, with {wins} wins and {ties} ties in {runs} runs.".format(**record)
    ],
)
