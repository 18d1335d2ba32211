"""A replay of a fit, layer by layer: as the estimator kept it, or run again on a sample by the literal engine."""

import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from sklearn.metrics import adjusted_rand_score
from sklearn.utils import check_random_state

from coterie import starts
from coterie.estimators.base import algorithm_of
from coterie.kmeans import engines
from coterie.kmeans.algorithm import Algorithm
from coterie.kmeans.sphere import on_sphere
from coterie.plot.layers import Layers
from coterie.selection import stratified_sample
from coterie.tabular.clustered_table import ClusteredTable

ROWS = 1_000
WORK = 6e6
MAX_LAYERS = 50
SHOWN_LAYERS = 40
STARTS, SECONDS = 8, 1.5
SAME = 0.99  # adjusted Rand index


@dataclass(frozen=True)
class Replay:
    """Layers to play, the rows that they show, and how they came about."""

    rows: np.ndarray
    layers: Layers
    note: str


def replay(subject: ClusteredTable, seed: int = 0) -> Replay | str:
    """The layers, or one sentence that says why there are none."""
    kept = getattr(subject.estimator, "trajectory_", None)
    # The literal engine compares all tokens with one another, column by column: n² min(n, d) numbers a layer.
    most = ROWS if kept else int(np.clip(np.sqrt(WORK / subject.points.shape[1]), np.cbrt(WORK), ROWS))
    rows = stratified_sample(subject.labels, most, least=5)
    if kept:
        steps = [(centers, np.asarray(shares)[rows]) for centers, shares in kept]
        note = f"These are the {len(steps)} layers of the fit itself"
        note += "." if len(rows) == subject.n else f", with {len(rows):,} of {subject.n:,} rows drawn."
        return Replay(rows, _thinned(Layers.of(subject.space[rows], steps, _objective(subject, rows, steps))), note)
    algorithm = algorithm_of(subject.estimator)
    name = type(subject.estimator).__name__
    if algorithm is None or algorithm.draws:
        return f"{name} has no layers in which centres move, so there is no replay."
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return _run(subject, rows, algorithm, seed)
        except ValueError:  # such as a sample with fewer different rows than clusters
            return f"The layers of {name} could not be run again on a sample of these rows."


def _run(subject: ClusteredTable, rows: np.ndarray, algorithm: Algorithm, seed: int) -> Replay:
    """The best of several runs: the one that ends nearest to the clusters of the report."""
    X = subject.points[rows].astype(np.float64)
    end = time.perf_counter() + SECONDS
    best: tuple[float, np.ndarray, list] | None = None
    for begin in _starts(subject, X, algorithm, seed):
        one = _once(subject, rows, begin, algorithm)
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


def _starts(subject: ClusteredTable, X: np.ndarray, algorithm: Algorithm, seed: int) -> Iterator[np.ndarray]:
    """The start that was given, or starts of the estimator's kind, beginning with its own seed."""
    init, state = subject.estimator.init, subject.estimator.random_state
    if not isinstance(init, str) and not callable(init):
        yield np.asarray(init, dtype=np.float64)
        return
    kind = init if isinstance(init, str) else "k-means++"
    random = check_random_state(state if isinstance(state, int | np.integer) else seed)
    for _ in range(STARTS):
        yield starts.choose(X, subject.k, kind, random, trim=algorithm.outliers)


def _once(
    subject: ClusteredTable, rows: np.ndarray, begin: np.ndarray, algorithm: Algorithm
) -> tuple[float, np.ndarray, list]:
    """How well the end agrees with the report; start and layers, numbered as in the report."""
    X = subject.points[rows].astype(np.float64)
    if algorithm.spherical:
        X, begin = on_sphere(X), on_sphere(begin)
    # LayerNorm depends on the coordinates; all other forms on distances and angles alone
    both, axes = np.vstack([X, begin]), np.eye(X.shape[1])
    if algorithm.row.form.norm != "layer" and len(both) < X.shape[1]:  # fewer axes in which rows keep all distances
        axes = np.linalg.svd(both, full_matrices=False)[2]
    again = engines.run(X @ axes.T, begin @ axes.T, algorithm, engine="literal", max_iter=MAX_LAYERS)
    _, order = linear_sum_assignment(cdist(subject.centers, again.centers @ axes))
    steps = [(centers[order] @ axes, shares[:, order]) for centers, shares in again.trajectory]
    kept = subject.labels[rows] >= 0
    same = adjusted_rand_score(subject.labels[rows][kept], steps[-1][1].argmax(1)[kept])
    return float(same), begin[order], steps


def _objective(subject: ClusteredTable, rows: np.ndarray, steps: list) -> list[float] | None:
    """The objective of the algorithm on the rows shown, where it is not the plain sum of squared distances."""
    algorithm = algorithm_of(subject.estimator)
    softmax = algorithm is not None and algorithm.variant.points == "softmax"
    if algorithm is None or not (softmax or algorithm.keep < 1):
        return None
    X, result = subject.space[rows], []
    for centers, shares in steps:
        cost = cdist(X, centers, "sqeuclidean")
        if softmax:  # the free energy: -1/gamma times the log of the softmax's denominator
            gamma = algorithm.gamma or 1.0
            lowest = cost.min(axis=1)
            result.append(float((lowest - np.log(np.exp(-gamma * (cost - lowest[:, None])).mean(1)) / gamma).sum()))
        else:
            own = np.sort((cost * shares).sum(axis=1))
            result.append(float(own[: max(1, round(len(own) * algorithm.keep))].sum()))
    return result


def _thinned(layers: Layers) -> Layers:
    """At most forty layers, the first and the last among them."""
    depth = len(layers.names)
    if depth <= SHOWN_LAYERS:
        return layers
    shown = np.unique(np.linspace(0, depth - 1, SHOWN_LAYERS).astype(int))
    names = tuple(layers.names[i] for i in shown)
    return Layers(layers.centers[shown], layers.assignments[shown], layers.objective[shown], names)
