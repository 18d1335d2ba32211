"""The centres in every layer of a fit: reported while it runs, and kept to be played later."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.metrics import pairwise_distances_argmin_min

MOST_KEPT = 20_000_000  # numbers; beyond that, no layers are kept
MOST_LAYERS = 40
MOST_WORK = 2e10  # multiplications, for the labels in all layers
PAUSE = 0.1  # seconds between two reports of progress


class Recorder:
    """A callback of scikit-learn (from 1.9 on) that keeps the centres of every iteration of every start."""

    def __init__(self, tell: Callable[[dict[str, Any]], None], place: Callable[[np.ndarray], np.ndarray], n_runs: int):
        self.tell, self.place, self.n_runs = tell, place, n_runs
        self.runs: dict[int, list[np.ndarray]] = {}
        self._kept, self._told = 0, 0.0

    def setup(self, estimator: Any, context: Any) -> None:
        """Part of the protocol; nothing to do."""

    def teardown(self, estimator: Any, context: Any) -> None:
        """Part of the protocol; nothing to do."""

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Part of the protocol; only finished iterations are recorded."""

    def on_fit_task_end(self, estimator: Any, context: Any, *, fitted_estimator: Any = None) -> bool:
        if context.task_name != "iteration" or not hasattr(fitted_estimator, "cluster_centers_"):
            return False  # the iterations of a VAEMixture move no centres
        centers = np.asarray(fitted_estimator.cluster_centers_, dtype=np.float64)
        run = int(context.parent.task_id)
        self._kept += centers.size
        if self._kept <= MOST_KEPT:
            self.runs.setdefault(run, []).append(centers.copy())
        if time.monotonic() - self._told >= PAUSE:
            self._told = time.monotonic()
            layer = int(context.task_id) + 1
            self.tell({"run": run + 1, "runs": self.n_runs, "layer": layer, "centers": rounded(self.place(centers))})
        return False

    def best(self, final: np.ndarray) -> list[np.ndarray]:
        """The layers of the start that was kept, which ends in the fitted centres."""
        if self._kept > MOST_KEPT:
            return []
        ends = {run: float(np.abs(steps[-1] - final).max()) for run, steps in self.runs.items()}
        return self.runs[min(ends, key=ends.__getitem__)] if ends else []


def watch(estimator: Any, recorder: Recorder) -> None:
    """Register the recorder, if scikit-learn and the estimator support callbacks."""
    if hasattr(estimator, "set_callbacks"):
        estimator.set_callbacks(recorder)


def colours(rows: np.ndarray, steps: list[np.ndarray], final: np.ndarray) -> list[dict[str, Any]]:
    """At most forty layers: the nearest centre of every row shown, and the mean squared distance to it.

    The last layer has the labels ``final`` of the fit.
    """
    if not steps:
        return []
    work = len(rows) * steps[0].size
    most = int(np.clip(MOST_WORK / max(work, 1), 4, MOST_LAYERS))
    shown = np.unique(np.linspace(0, len(steps) - 1, most).astype(int))
    layers = []
    for i in shown.tolist():
        labels, sq = pairwise_distances_argmin_min(rows, steps[i], metric="sqeuclidean")
        labels = final if i == len(steps) - 1 else labels
        layers.append({"layer": i + 1, "labels": labels, "cost": float(sq.mean()), "centers": steps[i]})
    return layers


def rounded(values: np.ndarray) -> list[list[float]]:
    """Positions for a screen, with six digits."""
    return [[float(f"{value:.6g}") for value in row] for row in np.asarray(values, dtype=np.float64)]
