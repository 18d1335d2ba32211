"""KMeans compared with scikit-learn, faiss and scikit-learn-intelex on the same data, starts and stopping rule.

Command: ``coterie bench kmeans``. Every method starts at the same k random rows, in single precision, and runs until
the labels repeat, for at most 100 iterations (10 in the embedding cells). faiss has no such rule and gets as many
iterations as scikit-learn's lloyd took. faiss's SuperKmeans ("faiss super") and superkmeans are approximate, choose
their own start and are measured in the embedding cells only; they do not count as the fastest other method. The
final inertia of each method is computed from its centres in double precision. The runs of one cell are interleaved, and
the fastest run of each method counts.

The result names the instruction sets. On a processor with AVX-512, these variables restrict all methods to AVX2::

    NUMBA_CPU_NAME=haswell NUMBA_CPU_FEATURES=+avx,+avx2,+bmi,+bmi2,+cx16,+f16c,+fma,+lzcnt,+movbe,+popcnt,+sse4.2
    OPENBLAS_CORETYPE=Haswell MKL_ENABLE_INSTRUCTIONS=AVX2 FAISS_SIMD_LEVEL=AVX2 ONEDAL_MAX_CPU=avx2

The result is then written to ``kmeans-avx2.json`` instead of ``kmeans.json``.
"""

import argparse
import json
import math
import os
import platform
import time
import warnings
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import make_blobs

from coterie.estimators import KMeans
from coterie.files import replacing
from coterie.kmeans.lazy import Assigner
from coterie.kmeans.lazy.lanes import vector_bits
from coterie_research import images
from coterie_research.benchmarks import _limits

SEED = 0
MAX_ITER = 100
REPEATS = 3
PATIENCE = 6.0  # seconds after which a method is not repeated


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


class Cell(NamedTuple):
    rows: Callable
    n: int
    d: int
    k: int
    max_iter: int = MAX_ITER


EMBEDDING = 1_000  # clusters from which on a cell is one of vector indexes

_CELLS: dict[str, tuple[Any, ...]] = {
    "blobs 1e6×2, 10": (_blobs, 1_000_000, 2, 10),
    "blobs 5e5×8, 64": (_blobs, 500_000, 8, 64),
    "blobs 2e5×32, 100": (_blobs, 200_000, 32, 100),
    "blobs 1e5×128, 256": (_blobs, 100_000, 128, 256),
    "uniform 3e5×4, 50": (_uniform, 300_000, 4, 50),
    "uniform 1e5×16, 200": (_uniform, 100_000, 16, 200),
    "Gaussian 2e5×16, 64": (_gaussian, 200_000, 16, 64),
    "Gaussian 5e4×128, 256": (_gaussian, 50_000, 128, 256),
    "MNIST 7e4×784, 10": (_images("mnist"), 70_000, 784, 10),
    "MNIST 7e4×784, 100": (_images("mnist"), 70_000, 784, 100),
    "MNIST PCA-50, 100": (_components("mnist"), 70_000, 50, 100),
    "Fashion PCA-50, 500": (_components("fashion"), 70_000, 50, 500),
    "MNIST 7e4×784, 1000": (_images("mnist"), 70_000, 784, EMBEDDING, 10),
    "Fashion 7e4×784, 1000": (_images("fashion"), 70_000, 784, EMBEDDING, 10),
    "embeddings 1e5×768, 1000": (_embeddings, 100_000, 768, EMBEDDING, 10),
}
CELLS = {name: Cell(*values) for name, values in _CELLS.items()}


def methods() -> dict[str, Callable]:
    """The methods by name: functions of rows, start and number of iterations that return centres and iterations."""
    from sklearn.cluster import KMeans as Peer

    def estimator(kind, **settings):
        def fit(X, start, n_iter):
            model = kind(len(start), init=start, n_init=1, tol=0, max_iter=n_iter, **settings).fit(X)
            return model.cluster_centers_, model.n_iter_

        return fit

    found = {
        "coterie": estimator(KMeans),
        "lloyd": estimator(Peer, algorithm="lloyd"),
        "elkan": estimator(Peer, algorithm="elkan"),
    }
    try:
        import faiss

        def faiss_method(kind, own_start=False):
            def fit(X, start, n_iter):
                limits = {"max_points_per_centroid": 10**9, "min_points_per_centroid": 1}
                model = kind(X.shape[1], len(start), niter=n_iter, **limits)
                model.train(X, init_centroids=None if own_start else start)
                return model.centroids, n_iter

            return fit

        found["faiss"] = faiss_method(faiss.Kmeans)
        if hasattr(faiss, "SuperKmeans"):
            found["faiss super"] = faiss_method(faiss.SuperKmeans, own_start=True)
    except ImportError:
        pass
    try:
        from sklearnex.cluster import KMeans as Accelerated

        found["intelex"] = estimator(Accelerated, algorithm="lloyd")
    except ImportError:
        pass
    try:
        from superkmeans import SuperKMeans

        def approximate(X, start, n_iter):
            model = SuperKMeans(
                len(start),
                X.shape[1],
                hierarchical=False,
                iters=n_iter,
                sampling_fraction=1.0,
                max_points_per_cluster=10**9,
                early_termination=False,
                tol=0.0,
                n_threads=_limits.cpus(),
            )
            return np.asarray(model.train(X)), n_iter

        found["superkmeans"] = approximate
    except ImportError:
        pass
    return found


APPROXIMATE = ("faiss super", "superkmeans")
NO_RULE = ("faiss", *APPROXIMATE)  # methods that perform a given number of iterations


def _suitable(known: dict[str, Callable], cell: Cell) -> dict[str, Callable]:
    """Without approximate methods in the usual cells, and without elkan, which keeps n · k bounds, in the others."""
    unsuitable = ("elkan",) if cell.k >= EMBEDDING else APPROXIMATE
    return {name: method for name, method in known.items() if name not in unsuitable}


def _inertia(X, centers) -> float:
    assigner = Assigner(X)
    assigner.assign(centers)
    return float(assigner.sq_distances().sum())


def measure(name: str, known: dict[str, Callable], quick: bool = False) -> dict:
    """Measure all methods on one cell."""
    cell = CELLS[name]
    make, n, d, k, max_iter = cell
    known = _suitable(known, cell)
    n = min(n, 5_000) if quick else n
    X = np.ascontiguousarray(make(n, d, k), dtype=np.float32)
    start = X[np.random.RandomState(SEED + 1).permutation(len(X))[:k]].copy()
    seconds: dict[str, list[float]] = {method: [] for method in known}
    outcome: dict[str, tuple] = {}
    cpu_seconds: dict[str, float] = {}
    n_iter = max_iter
    for _ in range(1 if quick else REPEATS):
        for method in ("lloyd", *(m for m in known if m != "lloyd")):
            if sum(seconds[method]) > PATIENCE:
                continue
            begin, cpu_begin = time.perf_counter(), time.process_time()
            outcome[method] = known[method](X, start, n_iter if method in NO_RULE else max_iter)
            seconds[method].append(time.perf_counter() - begin)
            cpu_seconds[method] = min(cpu_seconds.get(method, math.inf), time.process_time() - cpu_begin)
            if method == "lloyd":
                n_iter = outcome[method][1]
    reference, reference_iter = known["lloyd"](X.astype(np.float64), start.astype(np.float64), n_iter)
    results = {
        method: {
            "seconds": min(times),
            "all_seconds": times,
            "cpu_seconds": cpu_seconds[method],
            "n_iter": int(outcome[method][1]),
            "inertia": _inertia(X, outcome[method][0]),
        }
        for method, times in seconds.items()
    }
    peers = {method: min(times) for method, times in seconds.items() if method not in ("coterie", *APPROXIMATE)}
    best = min(peers, key=lambda method: peers[method])
    return {
        "cell": name,
        "n": len(X),
        "d": X.shape[1],
        "k": k,
        "methods": results,
        "double_precision": {"inertia": _inertia(X, reference), "n_iter": int(reference_iter)},
        "best_peer": best,
        "ratio": peers[best] / min(seconds["coterie"]),
    }


def run(quick: bool = False, output: Path = Path("results/kmeans-bench"), cells: list[str] | None = None) -> dict:
    """Measure the cells (all, or those whose names contain one of ``cells``) and write JSON and Markdown.

    Earlier results of other cells in the same folder are kept.
    """
    output = Path(output)
    output.mkdir(parents=True, exist_ok=True)
    name = {512: "kmeans", 256: "kmeans-avx2"}.get(vector_bits(), f"kmeans-{platform.machine()}")
    path = output / f"{name}.json"
    old = json.loads(path.read_text()) if path.exists() and cells is not None else {}
    rows = {row["cell"]: row for row in old.get("cells", [])}
    known = methods()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # peers warn that they have not converged
        KMeans(3, n_init=1).fit(np.random.RandomState(0).rand(65_536, 4).astype(np.float32))  # compiled, or from disk
        chosen = [cell for cell in CELLS if cells is None or any(part in cell for part in cells)]
        for cell in chosen:
            rows[cell] = measure(cell, known, quick)
        further = old.get("limits", {})
        if cells is None or "limits" in cells:
            further = _limits.run(quick)
    result = {
        "command": "coterie bench kmeans" + (" --quick" if quick else ""),
        "seed": SEED,
        "max_iter": MAX_ITER,
        "instructions": instructions(),
        "machine": f"{platform.processor() or platform.machine()}, {_limits.cpus()} CPUs",
        "versions": _versions(),
        "cells": [rows[cell] for cell in CELLS if cell in rows],
        "limits": further,
    }
    with replacing(path) as temporary:
        Path(temporary).write_text(json.dumps(result, indent=1))
    with replacing(output / f"{name}.md") as temporary:
        Path(temporary).write_text(markdown(result))
    return result


def instructions() -> dict[str, str]:
    """The instruction sets in use: vectors of compiled code, and what the libraries of the others report."""
    from threadpoolctl import threadpool_info

    found = {"coterie": f"vectors of {vector_bits()} bits"}
    for library in threadpool_info():
        if "architecture" in library:
            found[Path(library["filepath"]).name] = library["architecture"]
    try:
        import faiss

        found["faiss"] = faiss.SIMDConfig.get_level_name() if hasattr(faiss, "SIMDConfig") else "see its options"
    except ImportError:
        pass
    found |= {name: os.environ[name] for name in ("MKL_ENABLE_INSTRUCTIONS", "ONEDAL_MAX_CPU") if name in os.environ}
    return found


def _versions() -> dict[str, str]:
    names = ["coterie", "numpy", "numba", "scikit-learn", "faiss-cpu", "scikit-learn-intelex", "superkmeans"]
    installed = {}
    for name in names:
        try:
            installed[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return {"python": platform.python_version(), **installed}


def geometric_mean(result: dict) -> float:
    return math.exp(sum(math.log(row["ratio"]) for row in result["cells"]) / len(result["cells"]))


def markdown(result: dict) -> str:
    """Seconds of every method with, in brackets, iterations and inertia relative to lloyd in double precision."""
    names = list(dict.fromkeys(name for row in result["cells"] for name in row["methods"]))
    lines = [
        "| n × d, k | " + " | ".join(names) + " | fastest other ÷ coterie |",
        "|---" * (len(names) + 2) + "|",
    ]
    for row in result["cells"]:
        reference = row["double_precision"]["inertia"]
        entries = []
        for name in names:
            one = row["methods"].get(name)
            told = (
                "" if one is None else f"{one['seconds']:.3f} ({one['n_iter']}, {one['inertia'] / reference - 1:+.0e})"
            )
            entries.append(told)
        lines.append(f"| {row['cell']} | " + " | ".join(entries) + f" | {row['ratio']:.2f} |")
    if result["cells"]:
        lines.append("")
        lines.append(f"The geometric mean of fastest other ÷ coterie is {geometric_mean(result):.2f}.")
        lines.append("")
        lines.append(
            "Entries are seconds (iterations, inertia relative to scikit-learn's lloyd in double precision, minus 1). "
            f"Command: `{result['command']}`, seed {result['seed']}, {result['machine']}. Instruction sets: "
            + ", ".join(f"{name}: {told}" for name, told in result["instructions"].items())
            + "."
        )
    if result["limits"]:
        lines += ["", _limits.markdown(result["limits"])]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("cells", nargs="*", help="parts of cell names, or 'limits'; all by default")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--output", type=Path, default=Path("results/kmeans-bench"))
    options = parser.parse_args()
    print(markdown(run(options.quick, options.output, options.cells or None)))
