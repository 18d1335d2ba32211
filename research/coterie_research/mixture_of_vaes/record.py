"""What these experiments have in common: a record, earlier runs, scores of a clustering, curves of a fit."""

import json
import resource
import time
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from coterie.em import Iteration
from coterie_research import records
from coterie_research.drawing import Picture
from coterie_research.metrics import clustering_scores


def experiment(name: str, draw: Callable[[dict[str, Any]], Picture] | None = None) -> Callable:
    return records.experiment(f"vae/{name}", draw, threads=torch.get_num_threads)


def earlier(path: Path) -> list[dict[str, Any]]:
    """The runs of a record, if it is there: an interrupted experiment continues with the others."""
    return json.loads(path.read_text())["runs"] if path.exists() else []


def keep(runs: list[dict[str, Any]], path: Path) -> None:
    """Write runs where the record will be, for :func:`earlier`."""
    records.write({"runs": runs}, path)


def scores(labels: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """Accuracy under the best one-to-one matching, ARI and NMI."""
    found = {name: float(values[0]) for name, values in clustering_scores(labels[None], truth[None]).items()}
    return {"accuracy": round(1 - found["error"], 4), "ari": round(found["ari"], 4), "nmi": round(found["nmi"], 4)}


def n_majorities(labels: np.ndarray, truth: np.ndarray) -> int:
    """How many classes are the most frequent one of some cluster; the others are merged into clusters of theirs."""
    return len({np.bincount(truth[labels == cluster]).argmax() for cluster in np.unique(labels)})


def peak_gigabytes() -> float:
    """Of this process so far."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2)


def watch(curve: list[dict[str, Any]], truth, after: Callable[[Iteration], Any] = lambda iteration: None):
    """Contexts of :func:`coterie.generative.fitting.fit_in_stages` that add a point to ``curve`` after every iteration.

    ``after`` is called next; a true value ends the fit.
    """
    started = time.process_time()
    before = curve[-1]["cpu_seconds"] if curve else 0.0

    def on_iteration(iteration: Iteration) -> Any:
        found = iteration.expectation
        point = {
            "iteration": iteration.number,
            "accuracy": scores(found.labels, truth)["accuracy"],
            "classes": n_majorities(found.labels, truth),
            "bound": None if np.isnan(found.objective) else round(found.objective, 4),
            "entropy": round(found.entropy, 4),
            "moved": round(found.moved, 4),
            "cpu_seconds": round(before + time.process_time() - started, 1),
        }
        if found.move is not None:
            point["move"] = list(found.move)
        curve[:] = [*(row for row in curve if row["iteration"] < iteration.number), point]
        return after(iteration)

    @contextmanager
    def run(number: int):
        yield on_iteration

    return run


def random_responsibilities(n_rows: int, n_clusters: int, seed: int) -> torch.Tensor:
    """Independent uniform numbers, divided by their sum over the clusters."""
    start = np.random.RandomState(seed).uniform(size=(n_rows, n_clusters)).astype(np.float32)
    return torch.as_tensor(start / start.sum(1, keepdims=True))
