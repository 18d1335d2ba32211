"""Learned Lloyd beside what a user would do, at equal CPU seconds.

Command: ``coterie reproduce learned-lloyd/equal_seconds``. An instance has 600 points and 10 clusters. The budget of an
instance is what one run of the stronger learned Lloyd takes, from a greedy k-means++ start to its fixed point, or what
five runs take. Every other method repeats its run from new starts until the budget is spent and keeps the best. Its
last run counts in full, so that it gets rather more than the budget; the mean seconds are printed. All methods are
compiled in the same way and use one thread.
"""

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from coterie_research import images
from coterie_research.kmeans_transformers.learned_lloyd import plain
from coterie_research.kmeans_transformers.learned_lloyd.conditioned import (
    ANNEALING,
    PLAIN,
    TRAINED,
    run_layers,
    shipped_schedule,
)
from coterie_research.records import save, spent
from coterie_research.training.learned_lloyd import Instances

N, K = 600, 10
SIZES = Instances(clusters=(K, K), points_per_cluster=(N // K, N // K))
KINDS = ("blobs", "uniform", "decaying", "mnist-pca")
BUDGETS = (1, 5)
REFERENCE = "Lloyd, best of n"
Run = Callable[[np.ndarray, np.ndarray, np.random.Generator], float]


def methods() -> dict[str, Run]:
    trained, untrained, shipped = TRAINED.vector(), PLAIN.vector(), shipped_schedule()
    return {
        "learned Lloyd, stronger": lambda x, c, rng: run_layers(x, c, shipped, trained),
        REFERENCE: lambda x, c, rng: plain.lloyd(x, c),
        "learned Lloyd, shipped": lambda x, c, rng: run_layers(x, c, shipped, untrained),
        "annealing, untrained": lambda x, c, rng: run_layers(x, c, ANNEALING, untrained),
        "Hartigan-Wong": lambda x, c, rng: plain.hartigan(x, c),
        "LS++, 25 steps": lambda x, c, rng: plain.local_search(x, c, rng, 25),
        "breathing k-means, m = 5": lambda x, c, rng: plain.breathing(x, c, rng, 5),
    }


def instances(kind: str, n: int) -> list[np.ndarray]:
    generator = torch.Generator().manual_seed(30_000)
    if kind != "mnist-pca":
        return [SIZES.draw(1, generator, kind)[0][0].double().numpy() for _ in range(n)]
    pixels = torch.from_numpy(images.load("mnist")[0]).float() / 255
    pixels = pixels - pixels.mean(0)
    _, vectors = torch.linalg.eigh(pixels.mT @ pixels)
    table = (pixels @ vectors[:, -50:]).double().numpy()
    return [table[torch.randint(len(table), (N,), generator=generator).numpy()] for _ in range(n)]


def seconds_of(run: Run, x: np.ndarray, rng: np.random.Generator) -> tuple[float, float]:
    """The inertia of one run from a new start, and its CPU seconds with the start."""
    began = time.thread_time()
    inertia = run(x, plain.greedy_start(x, K, rng), rng)
    return inertia, time.thread_time() - began


def best_of(run: Run, x: np.ndarray, rng: np.random.Generator, n_runs: int, budget: float) -> tuple[float, float, int]:
    """The best inertia, the CPU seconds and the number of runs: at least ``n_runs``, and until the budget is spent."""
    best, spent, count = np.inf, 0.0, 0
    while count < n_runs or spent < budget:
        inertia, seconds = seconds_of(run, x, rng)
        best, spent, count = min(best, inertia), spent + seconds, count + 1
    return best, spent, count


def compare(kind: str, n: int) -> list[dict]:
    """One row per method and budget: the ratio to the reference with its standard error, CPU seconds and runs."""
    (first, learned), *others = methods().items()
    data = instances(kind, n)
    found: dict[tuple[str, int], list] = {}
    for _, run in [(first, learned), *others]:  # compile, and warm up
        seconds_of(run, data[0], np.random.default_rng(0))
    for number, x in enumerate(data):
        for times in BUDGETS:
            own = best_of(learned, x, np.random.default_rng([number, 0]), times, 0.0)
            found.setdefault((first, times), []).append(own)
            for place, (name, run) in enumerate(others, 1):
                ran = best_of(run, x, np.random.default_rng([number, place]), 1, own[1])
                found.setdefault((name, times), []).append(ran)
    rows = []
    for (name, times), runs in found.items():
        inertia, seconds, count = np.array(runs).T
        ratio = inertia / np.array(found[REFERENCE, times])[:, 0]
        rows.append(
            {
                "kind": kind,
                "budget": times,
                "method": name,
                "ratio": float(ratio.mean()),
                "standard_error": float(ratio.std(ddof=1) / len(ratio) ** 0.5),
                "milliseconds": 1e3 * float(seconds.mean()),
                "runs": float(count.mean()),
            }
        )
    return rows


def equal_seconds(output: Path, quick: bool = False) -> dict:
    """Compare all methods on all kinds, and write a table."""
    began, n, rows, missing = time.process_time(), 3 if quick else 50, [], []
    for kind in KINDS:
        try:
            rows += compare(kind, n)
        except FileNotFoundError as error:
            missing.append(f"{kind}: {error}")
    setting = {"instances": n, "points": N, "clusters": K, "parameters": vars(TRAINED)}
    record = save(
        {**setting, "rows": rows, "missing": missing},
        "learned-lloyd/equal_seconds",
        output,
        quick,
        file="equal-seconds",
        seed=30_000,
        cpu_seconds=spent(began),
    )
    (output / "equal-seconds.md").write_text(markdown(record))
    return record


def markdown(result: dict) -> str:
    lines = [
        "# Learned Lloyd beside what a user would do, at equal CPU seconds",
        "",
        f"`{result['command']}`: {result['instances']} instances of each kind with {result['points']} points and "
        f"{result['clusters']} clusters. Final inertia divided by that of Lloyd's algorithm, best of as many greedy "
        "k-means++ starts as the budget allows, mean ± standard error; in brackets, CPU milliseconds and runs.",
    ]
    for times in BUDGETS:
        lines += [
            "",
            f"Budget: the seconds of {times} run{'s' if times > 1 else ''} of the stronger learned Lloyd.",
            "",
        ]
        kinds = list(dict.fromkeys(row["kind"] for row in result["rows"]))
        lines += ["| method | " + " | ".join(kinds) + " |", "|---" * (len(kinds) + 1) + "|"]
        for name in dict.fromkeys(row["method"] for row in result["rows"]):
            cells = [
                f"{row['ratio']:.4f} ± {row['standard_error']:.4f} ({row['milliseconds']:.1f}, {row['runs']:.1f})"
                for row in result["rows"]
                if row["method"] == name and row["budget"] == times
            ]
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
    lines += [""] + [f"Omitted: {note}" for note in result["missing"]]
    return "\n".join(lines).rstrip() + "\n"
