"""The layers of a fit: as the estimator kept them, or run again on a sample by the literal engine."""

import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import normalize
from sklearn.utils import check_random_state

from coterie import starts
from coterie.estimators import AttentionClustering
from coterie.plot.layers import Layers
from coterie.reporting.subject import Subject, sample

ROWS = 1_000
WORK = 6e6
SHOWN_LAYERS = 40
STARTS, SECONDS = 8, 1.5
SAME = 0.99  # adjusted Rand index


@dataclass(frozen=True)
class Replay:
    """Layers to play, the rows that they show, and how they came about."""

    rows: np.ndarray
    layers: Layers
    note: str


def replay(subject: Subject, seed: int = 0) -> Replay | str:
    """The layers; or one sentence that says why there are none."""
    kept = getattr(subject.estimator, "trajectory_", None)
    # The literal engine compares all tokens with one another, column by column: n² min(n, d) numbers a layer.
    most = ROWS if kept else int(np.clip(np.sqrt(WORK / subject.X.shape[1]), np.cbrt(WORK), ROWS))
    rows = sample(subject.labels, most, least=5)
    if kept:
        steps = [(centers, np.asarray(shares)[rows]) for centers, shares in kept]
        note = f"These are the {len(steps)} layers of the fit itself"
        note += "." if len(rows) == subject.n else f", with {len(rows):,} of {subject.n:,} rows drawn."
        return Replay(rows, _thinned(Layers.of(subject.space[rows], steps, _objective(subject, rows, steps))), note)
    settings = _row_of_the_table(subject.estimator)
    name = type(subject.estimator).__name__
    if settings is None:
        return f"{name} keeps no layers in which centres move, so there is nothing to play here."
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
    """The run, of a few starts, that ends nearest to the clusters of the report."""
    X = subject.X[rows].astype(np.float64)
    end = time.perf_counter() + SECONDS
    best: tuple[float, np.ndarray, list] | None = None
    for begin in _starts(subject, X, seed):
        one = _once(subject, rows, begin, settings, seed)
        best = one if best is None or one[0] > best[0] else best
        if best[0] >= SAME or time.perf_counter() > end:
            break
    assert best is not None
    same, begin, steps = best
    lowered = _objective(subject, rows, [(begin, steps[0][1]), *steps])
    layers = Layers.of(subject.space[rows], steps, lowered, start=begin)
    what = "all rows" if len(rows) == subject.n else f"{len(rows):,} of the {subject.n:,} rows"
    note = f"Run again on {what} from one start, as a transformer of {len(steps)} layers. "
    if same >= SAME:
        note += "It ends in the clusters of this report."
    else:
        note += f"It ends in clusters that agree with this report to {same:.2f} (1 is the same; see Stability)."
    return Replay(rows, _thinned(layers), note)


def _starts(subject: Subject, X: np.ndarray, seed: int) -> Iterator[np.ndarray]:
    """The start that was given, or starts of the estimator's kind, its own seed first."""
    given = subject.estimator.get_params()
    init, state = given.get("init", "k-means++"), given.get("random_state")
    if not isinstance(init, str) and not callable(init):
        yield np.asarray(init, dtype=np.float64)
        return
    kind = init if init in ("k-means++", "random", "spectral") else "k-means++"
    random = check_random_state(state if isinstance(state, int | np.integer) else seed)
    trim = given.get("trim", 0.1 if "weighting" in given else 0.0)  # as the trimmed and the robust estimators do
    for _ in range(STARTS):
        yield starts.choose(X, subject.k, kind, random, trim=trim)


def _once(
    subject: Subject, rows: np.ndarray, begin: np.ndarray, settings: dict[str, Any], seed: int
) -> tuple[float, np.ndarray, list]:
    """How well the end agrees with the report; start and layers, numbered as in the report."""
    X = subject.X[rows].astype(np.float64)
    axes = _span(np.vstack([X, begin])) if "layernorm" not in settings["algorithm"] else np.eye(X.shape[1])
    again = AttentionClustering(
        n_clusters=subject.k, engine="literal", init=begin @ axes.T, max_iter=50, random_state=seed, **settings
    ).fit(X @ axes.T)
    if subject.spherical:
        begin = normalize(begin)
    _, order = linear_sum_assignment(cdist(subject.centers, again.cluster_centers_ @ axes))
    steps = [(centers[order] @ axes, shares[:, order]) for centers, shares in again.trajectory_]
    kept = subject.labels[rows] >= 0
    same = adjusted_rand_score(subject.labels[rows][kept], steps[-1][1].argmax(1)[kept])
    return float(same), begin[order], steps


def _span(rows: np.ndarray) -> np.ndarray:
    """Orthogonal axes in which the rows keep all distances, if they are fewer than the columns; else the columns."""
    if len(rows) >= rows.shape[1]:
        return np.eye(rows.shape[1])
    return np.linalg.svd(rows, full_matrices=False)[2]


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
