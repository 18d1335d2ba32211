"""Single calls of the k-means family compared with scikit-learn and FasterPAM: fits of small and large tables, predict.

Command: ``coterie bench calls``. Fits of one run start at the same rows and stop by the same rule, so both sides
perform the same iterations. Fits of ten runs choose their own starts by greedy k-means++. Other estimators of the
family have no counterpart with the same algorithm: their time per iteration is compared with that of ``KMeans`` here,
and that of ``SoftKMeans`` with that of ``GaussianMixture`` of scikit-learn. The calls of one line alternate, and the
fastest of each side counts. With one thread (``OMP_NUM_THREADS=1``), CPU times are compared, which other programs
change little; otherwise elapsed times.
"""

import json
import math
import platform
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn import cluster, mixture
from sklearn.datasets import make_blobs
from sklearn.metrics import pairwise_distances

import coterie
from coterie import threads
from coterie.files import replacing
from coterie_research.benchmarks import _limits

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


def _rows(n: int, d: int, k: int) -> np.ndarray:
    return make_blobs(n, d, centers=k, cluster_std=4.0, random_state=0)[0].astype(np.float32)


def _calling(estimator, method: str, X: np.ndarray) -> Callable[[], Any]:
    return lambda: getattr(estimator, method)(X)


def lines(quick: bool = False):
    """The lines, one at a time, so that only one table is in memory."""
    for size, (n, d, k) in list(SIZES.items())[: 2 if quick else None]:
        X = _rows(n, d, k)
        start = X[np.random.RandomState(1).permutation(n)[:k]].copy()
        yield from _of_kmeans(size, X, start)
    n, d, k = SIZES["2e3×10, 8"] if quick else (50_000, 16, 64)
    yield from _of_family(f"{n:.0e}×{d}, {k}".replace("e+0", "e"), _rows(n, d, k), k)
    yield _of_medoids(500 if quick else 3_000)


def _of_kmeans(size: str, X: np.ndarray, start: np.ndarray):
    k, settings = len(start), {"init": start, "n_init": 1, "tol": 0.0, "max_iter": 20}
    one, other = coterie.KMeans(k, **settings), cluster.KMeans(k, **settings)
    yield Line(f"fit {size}, 1 run", "KMeans", lambda: one.fit(X), lambda: other.fit(X))
    if len(X) <= 20_000:
        several = {"n_init": 10, "random_state": 0}
        ours, theirs = coterie.KMeans(k, **several), cluster.KMeans(k, **several)
        yield Line(f"fit {size}, 10 runs", "KMeans", lambda: ours.fit(X), lambda: theirs.fit(X))
    for call in ("predict", "transform", "score"):
        yield Line(f"{call} {size}", "KMeans", _calling(one, call, X), _calling(other, call, X))
    stream, batches = coterie.KMeans(k, init=start), cluster.MiniBatchKMeans(k, init=start, n_init=1)
    yield Line(f"partial_fit {size}", "MiniBatchKMeans", lambda: stream.partial_fit(X), lambda: batches.partial_fit(X))


def _of_family(size: str, X: np.ndarray, k: int):
    start = X[np.random.RandomState(1).permutation(len(X))[:k]].copy()
    settings = {"init": start, "tol": 0.0, "max_iter": 20}
    plain = coterie.KMeans(k, **settings)
    for name in ("SphericalKMeans", "TrimmedKMeans", "RobustKMeans"):
        one = getattr(coterie, name)(k, **settings)
        yield Line(f"{name} {size}", "coterie.KMeans", _calling(one, "fit", X), _calling(plain, "fit", X), True)
    soft = coterie.SoftKMeans(k, **settings)
    gaussians = mixture.GaussianMixture(
        k, covariance_type="spherical", means_init=start, init_params="random_from_data", tol=0.0, max_iter=20
    )
    yield Line(f"SoftKMeans {size}", "GaussianMixture", lambda: soft.fit(X), lambda: gaussians.fit(X), True)


def _of_medoids(n: int) -> Line:
    X = make_blobs(n, 8, centers=20, cluster_std=4.0, random_state=0)[0]

    def peer():
        import kmedoids

        return kmedoids.fasterpam(pairwise_distances(X, metric="sqeuclidean"), 20, random_state=0)

    return Line(f"KMedoids {n}×8, 20", "FasterPAM", lambda: coterie.KMedoids(20, random_state=0).fit(X), peer)


def measure(line: Line) -> dict:
    """The fastest call of each side in seconds, also in CPU seconds, and the inertia where both have one."""
    wall: tuple[list[float], list[float]] = ([], [])
    cpu: tuple[list[float], list[float]] = ([], [])
    results: list[Any] = [None, None]
    began = time.perf_counter()
    passed = 0.0
    while len(wall[0]) < FEWEST or passed < (LEAST if len(wall[0]) >= MOST else PATIENCE):
        for side, call in enumerate((line.ours, line.theirs)):
            clock, cpu_clock = time.perf_counter(), time.process_time()
            results[side] = call()
            times = time.perf_counter() - clock, time.process_time() - cpu_clock
            steps = getattr(results[side], "n_iter_", 1) if line.per_iteration else 1
            wall[side].append(times[0] / steps)
            cpu[side].append(times[1] / steps)
        passed = time.perf_counter() - began
    compared = cpu if threads.count() == 1 else wall
    inertia = [getattr(result, "inertia_", getattr(result, "loss", None)) for result in results]
    return {
        "call": line.name,
        "peer": line.peer,
        "per_iteration": line.per_iteration,
        "seconds": [min(wall[0]), min(wall[1])],
        "cpu_seconds": [min(cpu[0]), min(cpu[1])],
        "inertia_ratio": _ratio(*inertia) if not line.per_iteration else None,
        "ratio": min(compared[1]) / min(compared[0]),
    }


def _ratio(ours: float | None, theirs: float | None) -> float | None:
    return None if ours is None or theirs is None else float(ours / theirs)


def run(quick: bool = False, output: Path = Path("results/calls-bench")) -> dict:
    """Measure all lines, print them as they come, and write JSON and Markdown."""
    from coterie_research.benchmarks.kmeans import instructions

    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # neither side converges in so few iterations
        for line in lines(quick):
            rows.append(measure(line))
            print(f"{rows[-1]['call']}: {rows[-1]['ratio']:.2f}", flush=True)
    result = {
        "command": ("OMP_NUM_THREADS=1 " if threads.count() == 1 else "")
        + "coterie bench calls"
        + (" --quick" if quick else ""),
        "machine": f"{platform.processor() or platform.machine()}, {_limits.cpus()} CPUs",
        "threads": threads.count(),
        "instructions": instructions(),
        "lines": rows,
    }
    output = Path(output)
    output.mkdir(parents=True, exist_ok=True)
    for name, text in (("calls.json", json.dumps(result, indent=1)), ("calls.md", markdown(result))):
        with replacing(output / name) as temporary:
            Path(temporary).write_text(text)
    return result


def geometric_mean(result: dict) -> float:
    """Over the lines that have a counterpart in another package."""
    ratios = [row["ratio"] for row in result["lines"] if not row["peer"].startswith("coterie")]
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def markdown(result: dict) -> str:
    """The table, with milliseconds, CPU milliseconds in brackets, and the inertia relative to the peer's."""
    lines = [
        "| call | coterie, ms (CPU) | peer | peer, ms (CPU) | inertia ÷ peer's | peer ÷ coterie |",
        "|---" * 6 + "|",
    ]
    for row in result["lines"]:
        ours, theirs = (f"{1e3 * wall:.2f} ({1e3 * cpu:.2f})" for wall, cpu in zip(row["seconds"], row["cpu_seconds"]))
        name = row["call"] + (" per iteration" if row["per_iteration"] else "")
        inertia = "" if row["inertia_ratio"] is None else f"{row['inertia_ratio']:.4f}"
        lines.append(f"| {name} | {ours} | {row['peer']} | {theirs} | {inertia} | {row['ratio']:.2f} |")
    compared = "CPU times of one thread are compared." if result["threads"] == 1 else "Elapsed times are compared."
    told = ", ".join(f"{name}: {value}" for name, value in result["instructions"].items())
    lines += [
        "",
        f"The geometric mean of peer ÷ coterie over the lines with a peer in another package is "
        f"{geometric_mean(result):.2f}. {compared}",
        "",
        f"Command: `{result['command']}`, {result['machine']}. Instruction sets: {told}.",
    ]
    return "\n".join(lines) + "\n"
