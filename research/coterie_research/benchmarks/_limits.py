"""Speed of the lazy engine relative to the machine, its growth with n, its memory and its start-up time."""

import os
import subprocess
import sys
import time

import numpy as np

from coterie.kmeans import lazy
from coterie.kmeans.lazy import Assigner

_COLD = """
import sys, time
begin = time.perf_counter()
import numpy as np
from coterie.kmeans import lazy
X = np.random.RandomState(0).rand(2_000, 4).astype(np.float32)
ready = time.perf_counter()
lazy.run(X, X[:5], max_iter=3)
print(ready - begin, time.perf_counter() - ready)
"""


def cpus() -> int:
    return os.cpu_count() or 1


def run(quick: bool = False) -> dict:
    return {
        "machine": _machine(quick),
        "cells": [_work(name, quick) for name in ("blobs 2e5×32, 100", "Gaussian 5e4×128, 256", "MNIST 7e4×784, 10")],
        "growth": [_grown(n) for n in (10**4, 10**5, *(() if quick else (10**6, 10**7)))],
        "start_up": _start_up(),
    }


def _fastest(task, repeats=5):
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        task()
        times.append(time.perf_counter() - begin)
    return min(times)


def _machine(quick: bool) -> dict:
    """The speed of a plain matrix product and of a plain read."""
    size = 500 if quick else 3_000
    a = np.random.RandomState(0).rand(size, size).astype(np.float32)
    product = _fastest(lambda: a @ a)
    long = np.ones((4 if quick else 64) * 2**20, np.float32)
    read = _fastest(lambda: long.sum())
    return {"gflops": 2 * size**3 / product / 1e9, "gbytes": long.nbytes / read / 1e9}


def _work(name: str, quick: bool) -> dict:
    """Floating-point operations and bytes per second that a run really needs, and the share of scores it skips."""
    from coterie_research.benchmarks.kmeans import CELLS, MAX_ITER, SEED

    make, n, d, k, _ = CELLS[name]
    X = np.ascontiguousarray(make(min(n, 5_000) if quick else n, d, k), dtype=np.float32)
    centers = X[np.random.RandomState(SEED + 1).permutation(len(X))[:k]].copy()
    assigner = Assigner(X)
    first = _fastest(lambda: Assigner(X).assign(centers), 3)
    begin = time.perf_counter()
    n_iter = 0
    while n_iter < MAX_ITER:
        assigner.assign(centers)
        centers = assigner.means()
        n_iter += 1
        if not assigner.work["moved"]:
            break
    seconds = time.perf_counter() - begin
    scores, plain = assigner.work["scores"], assigner.work["plain"]
    return {
        "cell": name,
        "seconds": seconds,
        "n_iter": n_iter,
        "first_gflops": 2 * d * len(X) * k / first / 1e9,
        "first_gbytes": X.nbytes / first / 1e9,
        "gflops": 2 * d * scores / seconds / 1e9,
        "equivalent_gflops": 2 * d * plain / seconds / 1e9,
        "skipped": 1 - min(scores / plain, 1.0),
        "settled": assigner.work["settled"],
    }


def _grown(n: int) -> dict:
    X = np.random.RandomState(0).rand(n, 8).astype(np.float32)
    start = X[:32].copy()
    begin = time.perf_counter()
    result = lazy.run(X, start, max_iter=20)
    seconds = time.perf_counter() - begin
    assigner = Assigner(X)
    assigner.assign(start)
    kept = assigner.labels.nbytes + assigner.bounds.upper.nbytes + assigner.bounds.lower.nbytes
    return {"n": n, "seconds": seconds, "n_iter": result.n_iter, "bytes_a_row": kept / n, "data_bytes_a_row": 32}


def _start_up() -> dict:
    """Seconds of the import and of the first call in a new process, with compiled code on disk."""
    for _ in range(2):
        child = subprocess.run([sys.executable, "-c", _COLD], capture_output=True, text=True, check=True)
    imported, first = map(float, child.stdout.split())
    return {"import_seconds": imported, "first_call_seconds": first}


def markdown(limits: dict) -> str:
    machine, start_up = limits["machine"], limits["start_up"]
    lines = [
        f"A plain matrix product reaches {machine['gflops']:.0f} GFLOP/s on this machine, "
        f"and a plain read {machine['gbytes']:.0f} GB/s.",
        "",
        "| cell | seconds (iterations) | first pass, GFLOP/s | first pass, GB/s | all passes, GFLOP/s "
        "| GFLOP/s that plain Lloyd would need | scores skipped | rows that needed exact distances |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for one in limits["cells"]:
        lines.append(
            f"| {one['cell']} | {one['seconds']:.2f} ({one['n_iter']}) | {one['first_gflops']:.0f} "
            f"| {one['first_gbytes']:.1f} | {one['gflops']:.0f} | {one['equivalent_gflops']:.0f} "
            f"| {one['skipped']:.1%} | {one['settled']} |"
        )
    lines += [
        "",
        "| n (uniform, d 8, k 32, 20 iterations) | seconds | bytes per row beside the data | bytes per row of data |",
    ]
    lines.append("|---|---|---|---|")
    for one in limits["growth"]:
        lines.append(
            f"| {one['n']:.0e} | {one['seconds']:.3f} | {one['bytes_a_row']:.0f} | {one['data_bytes_a_row']} |"
        )
    lines += [
        "",
        f"In a new process with compiled code on disk, the import takes {start_up['import_seconds']:.2f} s and the "
        f"first call {start_up['first_call_seconds']:.2f} s.",
    ]
    return "\n".join(lines)
