"""Bounds on the sizes of clusters, beside k-means-constrained: the objective of the best of ten runs, and seconds.

Seconds are those of the processor, on one thread. On the large table both make the same few iterations from the same
start.
"""

import time
from functools import partial
from typing import Any

import numpy as np
from sklearn.datasets import make_blobs

from coterie import KMeans
from coterie_research.benchmarks.harness import Benchmark, Cell, Row, installed

SETS, RUNS, SEEDS = 10, 10, 5
LARGE, ITERATIONS = (100_000, 16, 50), 5


def drawn(seed: int) -> tuple[np.ndarray, int, tuple[int, int]]:
    """Rows, a number of clusters, and bounds between half of the mean size and one and a half of it."""
    rng = np.random.default_rng(seed)
    n, k, d = int(rng.integers(500, 2001)), int(rng.integers(5, 21)), int(rng.integers(2, 9))
    counts = rng.multinomial(n, rng.dirichlet(np.full(k, 2.0)))
    X, _ = make_blobs(counts, d, cluster_std=rng.uniform(1, 4), random_state=seed)
    low, high = rng.uniform(0.5, 0.9), rng.uniform(1.1, 1.5)
    return X, k, (int(low * n / k), int(np.ceil(high * n / k)))


def cells(quick: bool) -> list[Cell]:
    small = [Cell(f"set {seed}", partial(_compared, seed)) for seed in range(2 if quick else SETS)]
    n, d, k = (2_000, 4, 8) if quick else LARGE
    return [*small, Cell(f"{n:,} x {d}, {k} clusters, {ITERATIONS} iterations", partial(_large, n, d, k))]


def _compared(seed: int) -> Row:
    X, k, sizes = drawn(seed)
    found = [_measured(X, k, sizes, n_init=RUNS, random_state=again) for again in range(SEEDS)]
    means = {name: float(np.mean([one[name] for one in found])) for name in found[0] if not name.endswith("kept")}
    kept = {name: all(one[name] for one in found) for name in found[0] if name.endswith("kept")}
    return {"n": len(X), "k": k, "sizes": sizes, **means, **kept}


def _large(n: int, d: int, k: int) -> Row:
    X, _ = make_blobs(n, d, centers=k, cluster_std=4.0, random_state=0)
    sizes = (n // k // 2, 3 * n // k // 2)
    start = X[np.random.default_rng(0).choice(n, k, replace=False)]
    settings: dict[str, Any] = {"init": start, "n_init": 1, "max_iter": ITERATIONS, "tol": 0.0}
    return {"n": n, "k": k, "sizes": sizes} | _measured(X, k, sizes, **settings)


def _measured(X: np.ndarray, k: int, sizes: tuple[int, int], **settings: Any) -> Row:
    KMeans(2, sizes="balanced").fit(X[:100])  # compiles
    ours, row = KMeans(k, sizes=sizes, n_jobs=1, **settings), {}
    fits: dict[str, Any] = {"ours": ours}
    if installed("k_means_constrained"):
        from k_means_constrained import KMeansConstrained

        fits["other"] = KMeansConstrained(k, size_min=sizes[0], size_max=sizes[1], n_jobs=1, **settings)
    for name, estimator in fits.items():
        began = time.process_time()
        estimator.fit(X)
        counts = np.bincount(estimator.labels_, minlength=k)
        row[f"{name}_seconds"], row[name] = time.process_time() - began, float(estimator.inertia_)
        row[f"{name}_kept"] = bool(counts.min() >= sizes[0] and counts.max() <= sizes[1])
    return row


def page(record: Row) -> list[str]:
    rows = [row for row in record["rows"] if "other" in row and row["cell"].startswith("set")]
    ratios = [row["ours"] / row["other"] for row in rows]
    if not ratios:
        return []
    ours, other = (sum(row[f"{name}_seconds"] for row in rows) for name in ("ours", "other"))
    return [
        f"Of the sets, the ratio of the objectives is {min(ratios):.3f} to {max(ratios):.3f}, in {ours:.1f} s against "
        f"{other:.1f} s of CPU."
    ]


BENCHMARK = Benchmark(
    name="sizes",
    title="Bounds on sizes",
    cells=cells,
    intro=f"The objective (sum of squares, smaller is better) of the best of {RUNS} runs (mean of {SEEDS} seeds) "
    "within bounds on the sizes of clusters, and seconds of CPU on one thread, of `KMeans(sizes=...)` and of "
    "k-means-constrained.",
    columns={
        "": "{cell}",
        "rows": "{n:,}",
        "clusters": "{k}",
        "sizes": lambda row: "{} to {}".format(*row["sizes"]),
        "coterie": "{ours:.6g}",
        "k-means-constrained": "{other:.6g}",
        "ratio": lambda row: f"{row['ours'] / row['other']:.3f}" if "other" in row else "-",
        "s": "{ours_seconds:.2f}",
        "s, k-means-constrained": "{other_seconds:.2f}",
    },
    page=page,
    peers=("k_means_constrained",),
)
