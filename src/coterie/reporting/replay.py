"""The layers of a fit: as the estimator kept them, or run again on a sample by the literal engine."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from sklearn.metrics import adjusted_rand_score
from sklearn.utils import check_random_state

from coterie import starts
from coterie.estimators import AttentionClustering
from coterie.plot.layers import Layers
from coterie.reporting.subject import Subject, sample

ROWS = 1_000
SHOWN_LAYERS = 40


@dataclass(frozen=True)
class Replay:
    """Layers to play, the rows that they show, and how they came about."""

    rows: np.ndarray
    layers: Layers
    note: str


def replay(subject: Subject, seed: int = 0) -> Replay | str:
    """The layers; or one sentence that says why there are none."""
    rows = sample(subject.labels, ROWS, least=5)
    kept = getattr(subject.estimator, "trajectory_", None)
    if kept:
        steps = [(centers, np.asarray(shares)[rows]) for centers, shares in kept]
        note = f"These are the {len(steps)} layers of the fit itself"
        note += "." if len(rows) == subject.n else f", with {len(rows):,} of {subject.n:,} rows drawn."
        return Replay(rows, _thinned(Layers.of(subject.space[rows], steps, _objective(subject, rows, steps))), note)
    settings = _row_of_the_table(subject.estimator)
    name = type(subject.estimator).__name__
    if settings is None:
        return f"{name} does not work by layers that move centres, so there is nothing to play here."
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return _run(subject, rows, settings, seed)
        except ValueError:  # such as a sample with fewer different rows than clusters
            return f"The layers of {name} could not be run again on a sample of these rows."


def _row_of_the_table(estimator: Any) -> dict[str, Any] | None:
    """Which row of the family's table the estimator runs, with its settings."""
    name = type(estimator).__name__
    if name in ("KMeans", "MiniBatchKMeans"):
        return {"algorithm": "lloyd"}
    if name == "SphericalKMeans":
        return {"algorithm": "lloyd/spherical"}
    if name == "SoftKMeans":
        return {"algorithm": "soft", "gamma": estimator.gamma_}
    if name == "TrimmedKMeans":
        return {"algorithm": "trimmed", "keep": 1.0 - estimator.trim}
    if name == "RobustKMeans":
        row = f"robust-{estimator.weighting.replace('-', '')}"
        return {"algorithm": row, "gamma": estimator.gamma_, "top": estimator.top}
    if name == "AttentionClustering" and not estimator.algorithm.startswith("medoids"):
        return {key: getattr(estimator, key) for key in ("algorithm", "gamma", "keep", "top", "delta")}
    return None


def _run(subject: Subject, rows: np.ndarray, settings: dict[str, Any], seed: int) -> Replay:
    given = subject.estimator.get_params()
    init = given.get("init", "k-means++")
    state = given.get("random_state")
    X = subject.X[rows].astype(np.float64)
    if isinstance(init, str) or callable(init):
        random = check_random_state(state if isinstance(state, int | np.integer) else seed)
        begin = starts.choose(
            X, subject.k, init if init in ("k-means++", "random", "spectral") else "k-means++", random
        )
    else:
        begin = np.asarray(init, dtype=np.float64)
    again = AttentionClustering(
        n_clusters=subject.k, engine="literal", init=begin, max_iter=100, random_state=seed, **settings
    ).fit(X)
    if subject.spherical:
        begin = begin / np.maximum(np.linalg.norm(begin, axis=1, keepdims=True), 1e-300)
    _, order = linear_sum_assignment(cdist(subject.centers, again.cluster_centers_))
    steps = [(centers[order], shares[:, order]) for centers, shares in again.trajectory_]
    begin = begin[order]
    layers = Layers.of(
        subject.space[rows], steps, _objective(subject, rows, [(begin, steps[0][1]), *steps]), start=begin
    )
    kept = subject.labels[rows] >= 0
    same = adjusted_rand_score(subject.labels[rows][kept], np.asarray(steps[-1][1]).argmax(1)[kept])
    what = "all rows" if len(rows) == subject.n else f"{len(rows):,} of the {subject.n:,} rows"
    note = f"Run again on {what} from one start, as a transformer of {len(steps)} layers. "
    note += (
        "It ends in the clusters of this report."
        if same > 0.97
        else f"It ends in clusters that agree with this report to {same:.2f} (1 is the same; see Stability)."
    )
    return Replay(rows, _thinned(layers), note)


def _objective(subject: Subject, rows: np.ndarray, steps: list) -> list[float] | None:
    """What the estimator lowers, where that is not the plain sum of squared distances; on the rows shown."""
    gamma = float(getattr(subject.estimator, "gamma_", 0.0))
    trim = getattr(subject.estimator, "trim", 0.0)
    soft = type(subject.estimator).__name__ == "SoftKMeans" and gamma > 0
    if not soft and not trim:
        return None
    X, result = subject.space[rows], []
    for centers, shares in steps:
        cost = cdist(X, centers, "sqeuclidean")
        if soft:  # the free energy: -1/gamma times the log of the softmax's denominator
            lowest = cost.min(axis=1)
            result.append(float((lowest - np.log(np.exp(-gamma * (cost - lowest[:, None])).mean(1)) / gamma).sum()))
        else:
            own = np.sort((cost * shares).sum(axis=1))
            result.append(float(own[: max(1, round(len(own) * (1 - trim)))].sum()))
    return result


def _thinned(layers: Layers) -> Layers:
    """At most forty layers, the first and the last among them."""
    depth = len(layers.names)
    if depth <= SHOWN_LAYERS:
        return layers
    shown = np.unique(np.linspace(0, depth - 1, SHOWN_LAYERS).astype(int))
    names = tuple(layers.names[i] for i in shown)
    return Layers(layers.centers[shown], layers.assignments[shown], layers.objective[shown], names)
