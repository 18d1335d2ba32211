"""The statistics that each algorithm sums over blocks of rows.

A block is a chunk of a file or a part of a Dask collection. Every function here takes one block, in this process or on
a worker. Its results for different blocks can be added, and the sum over all blocks is what an iteration needs.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from coterie.kmeans import engines, single_pass
from coterie.kmeans.algorithm import Algorithm
from coterie.kmeans.kernel_input import check_cost
from coterie.kmeans.quantile_sketch import CostSketch
from coterie.kmeans.scaling import scaled
from coterie.kmeans.sphere import on_sphere
from coterie.kmeans.statistics import Statistics

_SAMPLE = 4_096  # rows of a block that tell how many move


@dataclass(frozen=True)
class Block:
    """Rows of positive weight as a C-contiguous array (n, d), normalised to length one for a spherical algorithm."""

    number: int  # from 0
    X: np.ndarray
    weight: np.ndarray | None
    n_rows: int  # including those of weight 0

    @property
    def weights(self) -> np.ndarray:
        return np.ones(len(self.X)) if self.weight is None else self.weight


class ChunkPasses:
    """Passes over chunks in this process, with one chunk in memory at a time."""

    def __init__(
        self, chunks: Iterable[Any], weight: np.ndarray | None = None, spherical: bool = False, exponent: int = 0
    ):
        self.chunks, self.weight, self.spherical, self.exponent = chunks, weight, spherical, exponent

    def blocks(self) -> Iterator[Block]:
        first = 0
        for number, X in enumerate(self.chunks):
            n = X.shape[0]
            weight = None if self.weight is None else self.weight[first : first + n]
            yield Block(number, on_sphere(X) if self.spherical else scaled(X, -self.exponent), weight, n)
            first += n

    def total(self, function: Callable[[Block, Any], Any], state: Any) -> Any:
        return reduce(add, (function(block, state) for block in self.blocks()))


@dataclass(frozen=True)
class Step:
    """The input of a pass: the algorithm, the centres, and results of earlier passes."""

    algorithm: Algorithm
    places: np.ndarray  # (k, d)
    weights: np.ndarray | None = None  # (k,) mixing weights
    limits: np.ndarray | None = None  # (k,) the largest costs that trimming keeps
    previous: np.ndarray | None = None  # (k, d) the centres before these, to count the rows that move
    wanted: int = 0  # distant rows, for empty clusters
    number: int = 0  # of the iteration: noise differs between iterations
    device: str = "cpu"
    n_threads: int | None = 1


@dataclass(frozen=True)
class Part:
    """The statistics for the M-step; and of a sample of rows, if wanted, how many there are and how many have moved."""

    statistics: Any
    seen: int = 0
    moved: int = 0  # rows with another nearest centre than before

    def __add__(self, other: "Part") -> "Part":
        return Part(self.statistics + other.statistics, self.seen + other.seen, self.moved + other.moved)


def step(block: Block, wanted: Step) -> Part:
    """The contribution of one block to an iteration."""
    variant = wanted.algorithm.variant
    found = _soft(block, wanted) if variant.soft else _RULES[variant.centers](block, wanted)
    return Part(found) if wanted.previous is None else Part(found, *_moved(block, wanted))


def sketch(block: Block, wanted: Step) -> CostSketch:
    """The sketch of the costs of one block, for trimming."""
    chosen, cost = _choose(block, wanted)
    groups = chosen if wanted.algorithm.per_cluster else np.zeros_like(chosen)
    return CostSketch.of(groups, cost, block.weights)


def cost(block: Block, wanted: Step) -> Statistics:
    """Sums, counts and inertia of the rows at their nearest centres, for any variant, without those beyond limits."""
    if is_plain(wanted):
        return single_pass.statistics(block.X, wanted.places, block.weight, wanted.n_threads)
    chosen, costs = _choose(block, wanted)
    if wanted.limits is not None:
        chosen = np.where(costs <= wanted.limits[chosen], chosen, -1)
    return Statistics.of(block.X, chosen, costs, len(wanted.places), block.weight)


def members(block: Block, wanted: Step) -> np.ndarray:
    """The total weight (k,) of the rows by the cluster in which their share is largest."""
    labels = engines.labels(
        block.X, wanted.places, wanted.algorithm, wanted.weights, None, wanted.device, wanted.n_threads
    )
    return np.bincount(labels, block.weights, minlength=len(wanted.places))


# --- how centres weigh their points: one function per rule of the family -----------------------------------


def _soft(block: Block, wanted: Step) -> Statistics:
    import torch

    from coterie.kmeans.fused import Fused

    fused = Fused(
        block.X, wanted.algorithm, sample_weight=block.weight, device=wanted.device, n_threads=wanted.n_threads
    )
    with torch.no_grad():
        shared: Any = fused.e_step(fused.state(wanted.places, wanted.weights))
    return Statistics(shared.sums.cpu().numpy(), shared.counts.cpu().numpy(), shared.objective)


@dataclass(frozen=True)
class Discounted:
    """Sums of rows with weights exp(-gamma (cost - best)), where best is the lowest cost in the cluster.

    To add two of them, both are converted to the lower ``best``.
    """

    statistics: Statistics
    best: np.ndarray  # (k,) infinite for a cluster without rows
    gamma: float

    def __add__(self, other: "Discounted") -> "Discounted":
        best = np.minimum(self.best, other.best)
        total = self._relative_to(best) + other._relative_to(best)
        return Discounted(total, best, self.gamma)

    def _relative_to(self, best: np.ndarray) -> Statistics:
        excess = np.subtract(self.best, best, out=np.zeros_like(best), where=np.isfinite(self.best))
        factor = np.exp(-self.gamma * excess)
        own = self.statistics
        return Statistics(own.sums * factor[:, None], own.counts * factor, own.inertia)


def _robust_softmax(block: Block, wanted: Step) -> Discounted:
    chosen, costs = _choose(block, wanted)
    k, gamma = len(wanted.places), wanted.algorithm.gamma
    assert gamma is not None
    best = np.full(k, np.inf)
    np.minimum.at(best, chosen, costs)
    weight = block.weights
    counted = weight * np.exp(-gamma * (costs - best[chosen]))
    own = Statistics.of(block.X, chosen, costs, k, counted)
    return Discounted(Statistics(own.sums, own.counts, float(weight @ costs)), best, gamma)


Columns = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Rows:
    """Some rows with their labels, costs and weights."""

    rows: np.ndarray  # (m, d)
    labels: np.ndarray  # (m,)
    costs: np.ndarray  # (m,)
    weight: np.ndarray  # (m,)

    def _columns(self) -> Columns:
        return self.rows, self.labels, self.costs, self.weight

    def _joined(self, other: "Rows") -> Columns:
        rows, labels, costs, weight = map(np.concatenate, zip(self._columns(), other._columns()))
        return rows, labels, costs, weight


@dataclass(frozen=True)
class NearRows(Rows):
    """The rows of positive weight for sparsemax and top-k, and the objective of all rows.

    Only near rows have weight. A row that has none among some of the rows has none among more of them, so only rows
    with weight are sent.
    """

    algorithm: Algorithm
    k: int
    objective: float

    def __add__(self, other: "NearRows") -> "NearRows":
        return NearRows(*self._joined(other), self.algorithm, self.k, self.objective + other.objective).pruned()

    def pruned(self) -> "NearRows":
        counts = self._counts() > 0
        rows, labels, costs, weight = (column[counts] for column in self._columns())
        return NearRows(rows, labels, costs, weight, self.algorithm, self.k, self.objective)

    def _counts(self) -> np.ndarray:
        import torch

        from coterie.kmeans.member_weights import member_weights

        labels = torch.from_numpy(np.ascontiguousarray(self.labels)).long()
        costs, weight = (torch.from_numpy(np.ascontiguousarray(one)) for one in (self.costs, self.weight))
        return member_weights(self.algorithm, labels, costs, weight, self.k).numpy()

    @property
    def statistics(self) -> Statistics:
        own = Statistics.of(self.rows, self.labels, self.costs, self.k, self._counts())
        return Statistics(own.sums, own.counts, self.objective)


def _robust_near(block: Block, wanted: Step) -> NearRows:
    chosen, costs = _choose(block, wanted)
    weight = block.weights
    k = len(wanted.places)
    return NearRows(block.X, chosen, costs, weight, wanted.algorithm, k, float(weight @ costs)).pruned()


@dataclass(frozen=True)
class Drawn:
    """For every centre, the row with the largest noisy score; and the objective. Adding keeps the larger scores."""

    scores: np.ndarray  # (k,)
    rows: np.ndarray  # (k, d)
    objective: float

    def __add__(self, other: "Drawn") -> "Drawn":
        first = self.scores >= other.scores
        rows = np.where(first[:, None], self.rows, other.rows)
        return Drawn(np.maximum(self.scores, other.scores), rows, self.objective + other.objective)

    @property
    def statistics(self) -> Statistics:
        return Statistics(self.rows.astype(np.float64), np.ones(len(self.rows)), self.objective)


def _drawn(block: Block, wanted: Step) -> Drawn:
    """Algorithm 6 with Gumbel noise that depends on the seed, the iteration and the block."""
    chosen, costs = _choose(block, wanted)
    algorithm, weight = wanted.algorithm, block.weights
    noise = np.random.default_rng((algorithm.seed, wanted.number, block.number))
    scores, rows = [], []
    for j, center in enumerate(wanted.places):
        plain = replace(wanted, places=center[None])
        score = np.log(weight) - _choose(block, plain)[1] - 2.0 * algorithm.delta * (chosen != j)
        score += noise.gumbel(size=len(score))
        rows.append(int(score.argmax()))
        scores.append(score[rows[-1]])
    return Drawn(np.array(scores), block.X[rows], float(weight @ costs))


_RULES: dict[str, Callable[[Block, Step], Any]] = {
    "limiting": cost,
    "norm-max": cost,
    "softmax": _robust_softmax,
    "sparsemax": _robust_near,
    "top-k": _robust_near,
    "gumbel": _drawn,
}


# --- empty clusters ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FarRows(Rows):
    """The distinct rows farthest from their centres with their total weights, and the total weights of all clusters."""

    counts: np.ndarray  # (k,)
    wanted: int

    def __add__(self, other: "FarRows") -> "FarRows":
        return FarRows(*self._joined(other), self.counts + other.counts, self.wanted).first()

    def first(self) -> "FarRows":
        """The farthest rows in the order of ``refill``: equal rows are merged, and ties are in lexicographic order."""
        if not len(self.rows):
            return self
        order = np.lexsort((*(self.rows + 0.0).T[::-1], -self.costs))
        rows = self.rows[order]
        starts = np.flatnonzero(np.r_[True, np.any(rows[1:] != rows[:-1], axis=1)])
        weight = np.add.reduceat(self.weight[order], starts)[: self.wanted]
        chosen = order[starts][: self.wanted]
        return FarRows(self.rows[chosen], self.labels[chosen], self.costs[chosen], weight, self.counts, self.wanted)


def far_rows(block: Block, wanted: Step) -> FarRows:
    """The rows that can fill empty clusters."""
    chosen, costs = _choose(block, wanted)
    weight = block.weights
    inside = costs <= (np.inf if wanted.limits is None else wanted.limits[chosen])
    counts = np.bincount(chosen[inside], weight[inside], minlength=len(wanted.places))
    kept = inside & (costs > 0)
    columns = (block.X[kept], chosen[kept], costs[kept], weight[kept])
    return FarRows(*columns, counts, wanted.wanted).first()


# --- what they share --------------------------------------------------------------------------------------


def is_plain(wanted: Step) -> bool:
    """Whether one compiled pass computes the statistics: Lloyd's algorithm with Euclidean distances on the CPU."""
    return wanted.algorithm.hard_means and not wanted.algorithm.spherical and wanted.device == "cpu"


def _choose(block: Block, wanted: Step) -> tuple[np.ndarray, np.ndarray]:
    """The best centre of every row and its cost, as in memory."""
    chosen, costs = engines.choose(block.X, wanted.places, wanted.algorithm, wanted.device, wanted.n_threads)
    check_cost(costs.sum())  # rows can change between two passes; trimming would leave NaN out
    return chosen, costs


def _moved(block: Block, wanted: Step) -> tuple[int, int]:
    """The number of rows of a sample, and how many of them have moved."""
    X = np.ascontiguousarray(block.X[:: max(1, len(block.X) // _SAMPLE)])
    now, before = (single_pass.assign(X, places, wanted.n_threads) for places in (wanted.places, wanted.previous))
    return len(X), int(np.count_nonzero(now != before))
