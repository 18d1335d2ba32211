"""KMeans compared with scikit-learn, faiss and scikit-learn-intelex on the same data, starts and stopping rule.

Every method runs in a process of its own, starts at the same k random rows, in single precision, and runs until the
labels repeat, for at most 100 iterations (10 in the embedding cells). faiss has no such rule and gets as many
iterations as scikit-learn's lloyd took. faiss's SuperKmeans ("faiss super") and superkmeans are approximate, choose
their own start and are measured in the embedding cells only; they do not count as the fastest other method. The final
inertia of each method is computed from its centres in double precision. The runs of one cell are interleaved, and the
fastest run of each method counts.

The result names the instruction sets. On a processor with AVX-512, these variables restrict all methods to AVX2::

    NUMBA_CPU_NAME=haswell NUMBA_CPU_FEATURES=+avx,+avx2,+bmi,+bmi2,+cx16,+f16c,+fma,+lzcnt,+movbe,+popcnt,+sse4.2
    OPENBLAS_CORETYPE=Haswell MKL_ENABLE_INSTRUCTIONS=AVX2 FAISS_SIMD_LEVEL=AVX2 ONEDAL_MAX_CPU=avx2

The result is then written to ``kmeans-avx2.json`` instead of ``kmeans.json``.
"""

import os
import platform
import statistics
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import make_blobs

from coterie.estimators import KMeans
from coterie.kmeans.lazy import Assigner
from coterie.kmeans.lazy.lanes import vector_bits
from coterie_research import images
from coterie_research.benchmarks.harness import (
    Benchmark,
    Cell,
    Columns,
    MethodFailed,
    Row,
    Times,
    alone,
    filled,
    geometric_mean,
    installed,
    repeated,
)

SEED = 0
MAX_ITER = 100
REPEATS = 3
PATIENCE = 6.0  # seconds after which a method is not repeated
LONGEST = 1_800.0  # seconds of one run, after which a method has failed
EMBEDDING = 1_000  # clusters from which on a cell is one of vector indexes


def _blobs(n, d, k):
    return make_blobs(n, d, centers=k, random_state=SEED)[0]


def _uniform(n, d, k):
    return np.random.RandomState(SEED).rand(n, d)


def _gaussian(n, d, k):
    return np.random.RandomState(SEED).randn(n, d)


def _embeddings(n, d, k):
    """Unit vectors of low rank with noise, in clusters of different sizes, as embeddings of texts and images are."""
    random = np.random.RandomState(SEED)
    rank = d // 12
    middles = random.randn(k, rank)
    rows = middles[random.choice(k, n, p=random.dirichlet(np.ones(k)))] + 0.7 * random.randn(n, rank)
    X = rows @ random.randn(rank, d) / np.sqrt(rank) + 0.3 * random.randn(n, d)
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def _images(name):
    return lambda n, d, k: images.load(name)[0][:n]


def _components(name):
    def reduced(n, d, k):
        X = images.load(name)[0][:n].astype(np.float64)
        X -= X.mean(axis=0)
        return X @ np.linalg.eigh(X.T @ X)[1][:, -d:]

    return reduced


class DataSet(NamedTuple):
    rows: Callable
    n: int
    d: int
    k: int
    max_iter: int = MAX_ITER


SETS = {
    "blobs 1e6×2, 10": DataSet(_blobs, 1_000_000, 2, 10),
    "blobs 5e5×8, 64": DataSet(_blobs, 500_000, 8, 64),
    "blobs 2e5×32, 100": DataSet(_blobs, 200_000, 32, 100),
    "blobs 1e5×128, 256": DataSet(_blobs, 100_000, 128, 256),
    "uniform 3e5×4, 50": DataSet(_uniform, 300_000, 4, 50),
    "uniform 1e5×16, 200": DataSet(_uniform, 100_000, 16, 200),
    "Gaussian 2e5×16, 64": DataSet(_gaussian, 200_000, 16, 64),
    "Gaussian 5e4×128, 256": DataSet(_gaussian, 50_000, 128, 256),
    "MNIST 7e4×784, 10": DataSet(_images("mnist"), 70_000, 784, 10),
    "MNIST 7e4×784, 100": DataSet(_images("mnist"), 70_000, 784, 100),
    "MNIST PCA-50, 100": DataSet(_components("mnist"), 70_000, 50, 100),
    "Fashion PCA-50, 500": DataSet(_components("fashion"), 70_000, 50, 500),
    "MNIST 7e4×784, 1000": DataSet(_images("mnist"), 70_000, 784, EMBEDDING, 10),
    "Fashion 7e4×784, 1000": DataSet(_images("fashion"), 70_000, 784, EMBEDDING, 10),
    "embeddings 1e5×768, 1000": DataSet(_embeddings, 100_000, 768, EMBEDDING, 10),
}


# --- the methods: functions of rows, start and number of iterations that return centres and iterations ----


def _estimator(kind: Any, **settings: Any) -> Callable:
    def fit(X, start, n_iter):
        model = kind(len(start), init=start, n_init=1, tol=0, max_iter=n_iter, **settings).fit(X)
        return model.cluster_centers_, int(model.n_iter_)

    return fit


def _of_sklearn(algorithm: str) -> Callable:
    from sklearn.cluster import KMeans as Peer

    return _estimator(Peer, algorithm=algorithm)


def _of_intel() -> Callable:
    from sklearnex.cluster import KMeans as Accelerated

    return _estimator(Accelerated, algorithm="lloyd")


def _of_faiss(kind: str, own_start: bool) -> Callable:
    import faiss

    def fit(X, start, n_iter):
        limits = {"max_points_per_centroid": 10**9, "min_points_per_centroid": 1}
        model = getattr(faiss, kind)(X.shape[1], len(start), niter=n_iter, **limits)
        model.train(X, init_centroids=None if own_start else start)
        return model.centroids, n_iter

    return fit


def _of_superkmeans() -> Callable:
    from superkmeans import SuperKMeans

    def fit(X, start, n_iter):
        exact = {"hierarchical": False, "sampling_fraction": 1.0, "max_points_per_cluster": 10**9}
        exact |= {"early_termination": False, "tol": 0.0, "n_threads": os.cpu_count() or 1}
        return np.asarray(SuperKMeans(len(start), X.shape[1], iters=n_iter, **exact).train(X)), n_iter

    return fit


METHODS: dict[str, tuple[str, Callable[[], Callable]]] = {  # the package and what makes the method
    "coterie": ("coterie", lambda: _estimator(KMeans)),
    "lloyd": ("sklearn", lambda: _of_sklearn("lloyd")),
    "elkan": ("sklearn", lambda: _of_sklearn("elkan")),
    "faiss": ("faiss", lambda: _of_faiss("Kmeans", own_start=False)),
    "faiss super": ("faiss", lambda: _of_faiss("SuperKmeans", own_start=True)),
    "intelex": ("sklearnex", _of_intel),
    "superkmeans": ("superkmeans", _of_superkmeans),
}
APPROXIMATE = ("faiss super", "superkmeans")
NO_RULE = ("faiss", *APPROXIMATE)  # methods that perform a given number of iterations


@cache
def _method(name: str) -> Callable:
    """The method in its own process, warmed up: what is compiled or loaded is not part of the seconds."""
    method = METHODS[name][1]()
    X = np.random.RandomState(0).rand(65_536, 4).astype(np.float32)
    method(X, X[:3].copy(), 2)
    return method


def one_run(name: str, folder: str, n_iter: int) -> tuple[Times, np.ndarray, int]:
    """Run a method in its own process on the files of a cell, whose memory all processes share."""
    X, start = np.load(f"{folder}/rows.npy", mmap_mode="c"), np.load(f"{folder}/start.npy")
    method = _method(name)
    times = repeated(Times([], [], None), lambda: method(X, start, n_iter))
    return times._replace(result=None), *times.result


def measure(name: str, quick: bool) -> Row:
    """Measure all methods on one cell, without approximate ones in the usual cells, and without elkan, which keeps
    n · k bounds, in the others."""
    make, n, d, k, max_iter = SETS[name]
    unsuitable = ("elkan",) if k >= EMBEDDING else APPROXIMATE
    known = [one for one, (package, _) in METHODS.items() if one not in unsuitable and installed(package)]
    X = np.ascontiguousarray(make(min(n, 5_000) if quick else n, d, k), dtype=np.float32)
    start = X[np.random.RandomState(SEED + 1).permutation(len(X))[:k]].copy()
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/rows.npy", X)
        np.save(f"{folder}/start.npy", start)
        results, failed = _runs(known, folder, max_iter, 1 if quick else REPEATS)
    n_iter = results["lloyd"]["n_iter"]
    reference, reference_iter = _of_sklearn("lloyd")(X.astype(np.float64), start.astype(np.float64), n_iter)
    least = _inertia(X, reference)
    for one in results.values():
        one["inertia"] = _inertia(X, one.pop("centers"))
        one["excess"] = one["inertia"] / least - 1
    peers = {one: row["seconds"] for one, row in results.items() if one not in ("coterie", *APPROXIMATE)}
    best = min(peers, key=lambda one: peers[one])
    return {
        "cell": name,
        "n": len(X),
        "d": X.shape[1],
        "k": k,
        "methods": results,
        "failed": failed,
        "double_precision": {"inertia": least, "n_iter": reference_iter},
        "best_peer": best,
        "ratio": peers[best] / results["coterie"]["seconds"],
    }


def _runs(known: list[str], folder: str, max_iter: int, repeats: int) -> tuple[dict[str, Row], dict[str, str]]:
    """Seconds, iterations and centres of every method, whose runs alternate; and why others have failed."""
    found: dict[str, Row] = {}
    failed: dict[str, str] = {}
    with ExitStack() as stack:
        processes = {name: stack.enter_context(alone(seconds=LONGEST)) for name in known}
        for _ in range(repeats):
            for name in sorted(known, key=lambda one: one != "lloyd"):
                row = found.setdefault(name, {"all_seconds": [], "all_cpu_seconds": []})
                if name in failed or sum(row["all_seconds"]) > PATIENCE:
                    continue
                n_iter = found["lloyd"]["n_iter"] if name in NO_RULE else max_iter
                try:
                    times, row["centers"], row["n_iter"] = processes[name](one_run, name, folder, n_iter)
                except MethodFailed as error:
                    if name in ("coterie", "lloyd"):
                        raise
                    failed[name] = str(error)
                    continue
                row["all_seconds"] += times.wall
                row["all_cpu_seconds"] += times.cpu
    for row in found.values():
        if row["all_seconds"]:
            row["seconds"], row["cpu_seconds"] = min(row["all_seconds"]), min(row.pop("all_cpu_seconds"))
            row["median_seconds"] = statistics.median(row["all_seconds"])
    return {name: row for name, row in found.items() if row["all_seconds"]}, failed


def _inertia(X, centers) -> float:
    assigner = Assigner(X)
    assigner.assign(centers)
    return float(assigner.sq_distances().sum())


def instructions() -> dict[str, str]:
    """The instruction sets in use: vectors of compiled code, and what the libraries of the others report."""
    from threadpoolctl import threadpool_info

    found = {"coterie": f"vectors of {vector_bits()} bits"}
    for library in threadpool_info():
        if "architecture" in library:
            found[Path(library["filepath"]).name] = library["architecture"]
    if installed("faiss"):
        import faiss

        found["faiss"] = faiss.SIMDConfig.get_level_name() if hasattr(faiss, "SIMDConfig") else "see its options"
    set_by_hand = ("MKL_ENABLE_INSTRUCTIONS", "ONEDAL_MAX_CPU")
    return found | {name: os.environ[name] for name in set_by_hand if name in os.environ}


def told(instructions: dict[str, str]) -> str:
    return "Instruction sets: " + ", ".join(f"{name}: {told}" for name, told in instructions.items()) + "."


def page(record: Row) -> list[str]:
    """Seconds of every method with, in brackets, iterations and inertia relative to lloyd in double precision."""
    entry = "{{methods[{0}][seconds]:.3f}} ({{methods[{0}][n_iter]}}, {{methods[{0}][excess]:+.0e}})"
    names = dict.fromkeys(name for row in record["cells"] for name in row["methods"])
    columns: Columns = {"n × d, k": "{cell}", **{name: entry.format(name) for name in names}}
    mean = geometric_mean([row["ratio"] for row in record["cells"]])
    return [
        *filled({**columns, "fastest other ÷ coterie": "{ratio:.2f}"}, record["cells"]),
        "",
        f"The geometric mean of fastest other ÷ coterie is {mean:.2f}.",
        "",
        "Entries are seconds (iterations, inertia relative to scikit-learn's lloyd in double precision, minus 1).",
        "",
        told(record["instructions"]),
    ]


BENCHMARK = Benchmark(
    name="kmeans",
    title="KMeans compared with other packages",
    folder="kmeans-bench",
    file={512: "kmeans", 256: "kmeans-avx2"}.get(vector_bits(), f"kmeans-{platform.machine()}"),
    readme=False,
    rows="cells",
    seed=SEED,
    peers=("faiss", "sklearnex", "superkmeans"),
    settings=lambda quick: {"max_iter": MAX_ITER, "instructions": instructions()},
    cells=lambda quick: [Cell(name, partial(measure, name, quick)) for name in list(SETS)[:: 4 if quick else 1]],
    page=page,
)
