"""Single calls of the k-means family compared with scikit-learn and FasterPAM: fits of small and large tables, predict.

Fits of one run start at the same rows and stop by the same rule, so both sides perform the same iterations. Fits of ten
runs choose their own starts by greedy k-means++. Other estimators of the family have no counterpart with the same
algorithm: their time per iteration is compared with that of ``KMeans`` here, and that of ``SoftKMeans`` with that of
``GaussianMixture`` of scikit-learn. The calls of one line alternate, and the fastest of each side counts. With one
thread (``OMP_NUM_THREADS=1``), CPU times are compared, which other programs change little; otherwise elapsed times.
"""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn import cluster, mixture
from sklearn.datasets import make_blobs
from sklearn.metrics import pairwise_distances

import coterie
from coterie import threads
from coterie_research.benchmarks.harness import Benchmark, Cell, Row, alternated, geometric_mean
from coterie_research.benchmarks.kmeans import instructions, told

SIZES = {  # n, d, k
    "300×5, 5": (300, 5, 5),
    "2e3×10, 8": (2_000, 10, 8),
    "2e4×16, 16": (20_000, 16, 16),
    "2e5×16, 64": (200_000, 16, 64),
    "1e6×16, 64": (1_000_000, 16, 64),
}
PATIENCE = 2.0  # seconds of one line, beyond which nothing is repeated
FEWEST = 4  # repetitions in any case
MOST = 30  # repetitions, or more if they take less than
LEAST = 0.3  # seconds


class Line(NamedTuple):
    """One line of the table: two calls and what is compared."""

    name: str
    peer: str
    ours: Callable[[], Any]
    theirs: Callable[[], Any]
    per_iteration: bool = False


def cells(quick: bool) -> list[Cell]:
    """One cell per table, so that only one table is in memory."""
    n, d, k = SIZES["2e3×10, 8"] if quick else (50_000, 16, 64)
    medoids = 500 if quick else 3_000
    return [
        *(Cell(f"KMeans {size}", partial(of_kmeans, size)) for size in list(SIZES)[: 2 if quick else None]),
        Cell("family", partial(of_family, f"{n:.0e}×{d}, {k}".replace("e+0", "e"), n, d, k)),
        Cell("KMedoids", partial(of_medoids, medoids)),
    ]


def _rows(n: int, d: int, k: int) -> np.ndarray:
    return make_blobs(n, d, centers=k, cluster_std=4.0, random_state=0)[0].astype(np.float32)


def _start(X: np.ndarray, k: int) -> np.ndarray:
    return X[np.random.RandomState(1).permutation(len(X))[:k]].copy()


def of_kmeans(size: str) -> list[Row]:
    n, d, k = SIZES[size]
    return [measure(line) for line in _lines_of_kmeans(size, _rows(n, d, k), k)]


def _lines_of_kmeans(size: str, X: np.ndarray, k: int) -> Iterator[Line]:
    settings = {"init": _start(X, k), "n_init": 1, "tol": 0.0, "max_iter": 20}
    one, other = coterie.KMeans(k, **settings), cluster.KMeans(k, **settings)
    yield Line(f"fit {size}, 1 run", "KMeans", partial(one.fit, X), partial(other.fit, X))
    if len(X) <= 20_000:
        several = {"n_init": 10, "random_state": 0}
        ours, theirs = (partial(kind(k, **several).fit, X) for kind in (coterie.KMeans, cluster.KMeans))
        yield Line(f"fit {size}, 10 runs", "KMeans", ours, theirs)
    for call in ("predict", "transform", "score"):
        yield Line(f"{call} {size}", "KMeans", partial(getattr(one, call), X), partial(getattr(other, call), X))
    stream = coterie.KMeans(k, init=settings["init"])
    batches = cluster.MiniBatchKMeans(k, init=settings["init"], n_init=1)
    calls = partial(stream.partial_fit, X), partial(batches.partial_fit, X)
    yield Line(f"partial_fit {size}", "MiniBatchKMeans", *calls)


def of_family(size: str, n: int, d: int, k: int) -> list[Row]:
    X = _rows(n, d, k)
    settings = {"init": _start(X, k), "tol": 0.0, "max_iter": 20}
    plain = partial(coterie.KMeans(k, **settings).fit, X)
    kinds = (coterie.SphericalKMeans, coterie.TrimmedKMeans, coterie.RobustKMeans)
    lines = [
        Line(f"{kind.__name__} {size}", "coterie.KMeans", partial(kind(k, **settings).fit, X), plain, True)
        for kind in kinds
    ]
    start = {"means_init": settings["init"], "init_params": "random_from_data"}
    gaussians = mixture.GaussianMixture(k, covariance_type="spherical", tol=0.0, max_iter=20, **start)
    soft = partial(coterie.SoftKMeans(k, **settings).fit, X)
    lines.append(Line(f"SoftKMeans {size}", "GaussianMixture", soft, partial(gaussians.fit, X), True))
    return [measure(line) for line in lines]


def of_medoids(n: int) -> Row:
    X = make_blobs(n, 8, centers=20, cluster_std=4.0, random_state=0)[0]

    def peer() -> Any:
        import kmedoids

        return kmedoids.fasterpam(pairwise_distances(X, metric="sqeuclidean"), 20, random_state=0)

    return measure(Line(f"KMedoids {n}×8, 20", "FasterPAM", partial(coterie.KMedoids(20, random_state=0).fit, X), peer))


def measure(line: Line) -> Row:
    """The fastest call of each side in seconds, also in CPU seconds, and the inertia where both have one."""
    both = alternated(
        (line.ours, line.theirs),
        lambda done, passed: done >= FEWEST and passed >= (LEAST if done >= MOST else PATIENCE),
    )
    steps = [getattr(one.result, "n_iter_", 1) if line.per_iteration else 1 for one in both]
    wall, cpu = ([min(getattr(one, of)) / n for one, n in zip(both, steps)] for of in ("wall", "cpu"))
    inertia = [getattr(one.result, "inertia_", getattr(one.result, "loss", math.nan)) for one in both]
    quotient = float(inertia[0] / inertia[1])
    ours, theirs = cpu if threads.count() == 1 else wall
    return {
        "call": line.name,
        "peer": line.peer,
        "per_iteration": line.per_iteration,
        "seconds": wall,
        "cpu_seconds": cpu,
        "inertia_ratio": None if line.per_iteration or math.isnan(quotient) else quotient,
        "ratio": theirs / ours,
    }


def page(record: Row) -> list[str]:
    others = [row["ratio"] for row in record["lines"] if not row["peer"].startswith("coterie")]
    compared = "CPU times of one thread are compared." if record["threads"] == 1 else "Elapsed times are compared."
    mean = "The geometric mean of peer ÷ coterie over the lines with a peer in another package is "
    return [f"{mean}{geometric_mean(others):.2f}. {compared}", "", told(record["instructions"])]


BENCHMARK = Benchmark(
    name="calls",
    title="Single calls of the k-means family compared with other packages",
    folder="calls-bench",
    readme=False,
    rows="lines",
    needs=("kmedoids",),
    settings=lambda quick: {"threads": threads.count(), "instructions": instructions()},
    cells=cells,
    columns={
        "call": lambda row: row["call"] + " per iteration" * row["per_iteration"],
        "coterie, s (CPU)": "{seconds[0]:.3g} ({cpu_seconds[0]:.3g})",
        "peer": "{peer}",
        "peer, s (CPU)": "{seconds[1]:.3g} ({cpu_seconds[1]:.3g})",
        "inertia ÷ peer's": "{inertia_ratio:.4f}",
        "peer ÷ coterie": "{ratio:.2f}",
    },
    page=page,
)
