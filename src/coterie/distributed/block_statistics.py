"""What each member of the family sums over blocks: values that add, and the functions that make one of a block.

Every function here runs on a worker, on one opened block.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from coterie.distributed.blocks import Opened
from coterie.distributed.quantile_sketch import CostSketch
from coterie.kmeans import single_pass
from coterie.kmeans.statistics import Statistics

_SAMPLE = 4_096  # rows of a block that tell how many move


@dataclass(frozen=True)
class Plan:
    """Which member of the family runs, and with what settings."""

    variant: str  # a name in kmeans.table.VARIANTS
    spherical: bool = False
    gamma: float | None = 1.0  # None: ``gamma_scale`` over the mean cost of the start
    gamma_scale: float = 1.0
    keep: float = 1.0
    per_cluster: bool = False
    top: int = 10
    mixing_weights: bool = False
    trim_start: float = 0.0
    device: str = "cpu"

    def with_gamma(self, gamma: float) -> "Plan":
        return replace(self, gamma=gamma)


@dataclass(frozen=True)
class Step:
    """What a pass needs to know: the plan, the centres, and what earlier passes found."""

    plan: Plan
    places: np.ndarray  # (k, d)
    weights: np.ndarray | None = None  # (k,) mixing weights
    limits: np.ndarray | None = None  # (k,) the largest costs that trimming keeps
    previous: np.ndarray | None = None  # (k, d) the centres before these, if somebody wants to know what moved
    wanted: int = 0  # far rows, for empty clusters


@dataclass(frozen=True)
class Moved:
    """Rows of a sample, and how many of them have another nearest centre than before."""

    rows: int = 0
    moved: int = 0

    def __add__(self, other: "Moved") -> "Moved":
        return Moved(self.rows + other.rows, self.moved + other.moved)


@dataclass(frozen=True)
class Part:
    """What a step sums: the statistics of the M-step and, where watched, the rows that moved."""

    statistics: Any
    moved: Moved = Moved()

    def __add__(self, other: "Part") -> "Part":
        return Part(self.statistics + other.statistics, self.moved + other.moved)


def step(block: Opened, wanted: Step) -> Part:
    """One block's part of an iteration."""
    moved = Moved() if wanted.previous is None else _moved(block, wanted)
    return Part(_RULES[wanted.plan.variant](block, wanted), moved)


def sketch(block: Opened, wanted: Step) -> CostSketch:
    """The costs of one block, for trimming."""
    chosen, cost = _choose(block, wanted)
    groups = chosen if wanted.plan.per_cluster else np.zeros_like(chosen)
    return CostSketch.of(groups, cost, _weight(block))


def cost(block: Opened, wanted: Step) -> Statistics:
    """The plain costs at the nearest centres, whatever the variant."""
    if is_plain(wanted.plan):
        return single_pass.statistics(block.X, wanted.places, block.weight, n_threads=1)
    chosen, costs = _choose(block, wanted)
    return Statistics.of(block.X, chosen, costs, len(wanted.places), block.weight)


# --- the members of the family ----------------------------------------------------------------------------


def _lloyd(block: Opened, wanted: Step) -> Statistics:
    return cost(block, wanted)


def _trimmed(block: Opened, wanted: Step) -> Statistics:
    chosen, costs = _choose(block, wanted)
    assert wanted.limits is not None
    labels = np.where(costs <= wanted.limits[chosen], chosen, -1)
    return Statistics.of(block.X, labels, costs, len(wanted.places), block.weight)


def _soft(block: Opened, wanted: Step) -> Statistics:
    import torch

    from coterie.kmeans.engine import Centers

    fused = _fused(block, wanted.plan)
    with torch.no_grad():
        weights = None if wanted.weights is None else torch.as_tensor(wanted.weights)
        shared: Any = fused.e_step(Centers(_on(fused, wanted.places), weights))
    return Statistics(shared.sums.cpu().numpy(), shared.counts.cpu().numpy(), shared.objective)


@dataclass(frozen=True)
class Discounted:
    """Sums of rows that count by exp(-gamma (cost - best)), where best is the least cost in the cluster: they add after
    both were brought to the lower of the two."""

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


def _robust_softmax(block: Opened, wanted: Step) -> Discounted:
    chosen, costs = _choose(block, wanted)
    k, gamma = len(wanted.places), wanted.plan.gamma
    assert gamma is not None
    best = np.full(k, np.inf)
    np.minimum.at(best, chosen, costs)
    weight = _weight(block)
    counted = weight * np.exp(-gamma * (costs - best[chosen]))
    own = Statistics.of(block.X, chosen, costs, k, counted)
    return Discounted(Statistics(own.sums, own.counts, float(weight @ costs)), best, gamma)


@dataclass(frozen=True)
class NearRows:
    """The rows that count for their centres where only near ones do (sparsemax, top-k), and the objective of all.

    A row that does not count among some of the rows does not count among more of them, so only those that do travel.
    """

    plan: Plan
    k: int
    rows: np.ndarray  # (m, d)
    labels: np.ndarray  # (m,)
    costs: np.ndarray  # (m,)
    weight: np.ndarray  # (m,)
    objective: float

    def __add__(self, other: "NearRows") -> "NearRows":
        rows, labels, costs, weight = map(np.concatenate, zip(self._columns(), other._columns()))
        objective = self.objective + other.objective
        return NearRows(self.plan, self.k, rows, labels, costs, weight, objective).pruned()

    def _columns(self) -> tuple[np.ndarray, ...]:
        return self.rows, self.labels, self.costs, self.weight

    def pruned(self) -> "NearRows":
        counts = self._counts() > 0
        rows, labels, costs, weight = (column[counts] for column in self._columns())
        return NearRows(self.plan, self.k, rows, labels, costs, weight, self.objective)

    def _counts(self) -> np.ndarray:
        import torch

        from coterie.kmeans.member_weights import member_weights

        rule = {"robust-sparsemax": "sparsemax", "robust-topk": "top-k"}[self.plan.variant]
        labels, costs, weight = (
            torch.from_numpy(np.ascontiguousarray(one)) for one in (self.labels, self.costs, self.weight)
        )
        return member_weights(rule, labels, costs, weight, self.k, _settings(self.plan)).numpy()

    @property
    def statistics(self) -> Statistics:
        own = Statistics.of(self.rows, self.labels, self.costs, self.k, self._counts())
        return Statistics(own.sums, own.counts, self.objective)


def _robust_near(block: Opened, wanted: Step) -> NearRows:
    chosen, costs = _choose(block, wanted)
    weight = _weight(block)
    k = len(wanted.places)
    return NearRows(wanted.plan, k, block.X, chosen, costs, weight, float(weight @ costs)).pruned()


_RULES: dict[str, Callable[[Opened, Step], Any]] = {
    "lloyd": _lloyd,
    "soft": _soft,
    "trimmed": _trimmed,
    "robust-softmax": _robust_softmax,
    "robust-sparsemax": _robust_near,
    "robust-topk": _robust_near,
}


# --- empty clusters ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FarRows:
    """The distinct rows farthest from their centres with their total weights, and the plain weights of all clusters."""

    rows: np.ndarray  # (m, d)
    labels: np.ndarray  # (m,)
    costs: np.ndarray  # (m,)
    weight: np.ndarray  # (m,)
    counts: np.ndarray  # (k,)
    wanted: int

    def __add__(self, other: "FarRows") -> "FarRows":
        rows, labels, costs, weight = map(np.concatenate, zip(self._columns(), other._columns()))
        return FarRows(rows, labels, costs, weight, self.counts + other.counts, self.wanted).first()

    def _columns(self) -> tuple[np.ndarray, ...]:
        return self.rows, self.labels, self.costs, self.weight

    def first(self) -> "FarRows":
        """Farthest first, equal rows as one, of equal distances in lexicographic order: the order of ``refill``."""
        if not len(self.rows):
            return self
        order = np.lexsort((*(self.rows + 0.0).T[::-1], -self.costs))
        rows = self.rows[order]
        starts = np.flatnonzero(np.r_[True, np.any(rows[1:] != rows[:-1], axis=1)])
        weight = np.add.reduceat(self.weight[order], starts)[: self.wanted]
        chosen = order[starts][: self.wanted]
        return FarRows(self.rows[chosen], self.labels[chosen], self.costs[chosen], weight, self.counts, self.wanted)


def far_rows(block: Opened, wanted: Step) -> FarRows:
    """The rows that may fill empty clusters."""
    if is_plain(wanted.plan):
        chosen = single_pass.assign(block.X, wanted.places, n_threads=1)
        difference = block.X.astype(np.float64) - wanted.places[chosen]
        costs = np.einsum("nd,nd->n", difference, difference)
    else:
        chosen, costs = _choose(block, wanted)
    weight = _weight(block)
    kept = costs > 0
    if wanted.limits is not None:
        inside = costs <= wanted.limits[chosen]
        counts = np.bincount(chosen[inside], weight[inside], minlength=len(wanted.places))
        kept &= inside
    else:
        counts = np.bincount(chosen, weight, minlength=len(wanted.places))
    columns = (block.X[kept], chosen[kept], costs[kept], weight[kept])
    return FarRows(*columns, counts, wanted.wanted).first()


# --- what they share --------------------------------------------------------------------------------------


def _weight(block: Opened) -> np.ndarray:
    return np.ones(len(block.X)) if block.weight is None else block.weight


def is_plain(plan: Plan) -> bool:
    """Whether the compiled one-pass kernel computes it."""
    return plan.variant == "lloyd" and not plan.spherical and plan.device == "cpu"


def _settings(plan: Plan):
    from coterie.kmeans.weights import Settings

    return Settings(gamma=1.0 if plan.gamma is None else plan.gamma, keep=plan.keep, top=plan.top)


def _fused(block: Opened, plan: Plan):
    from coterie.kmeans.family import VARIANTS
    from coterie.kmeans.fused import Fused

    variant = VARIANTS[plan.variant]
    return Fused(
        block.X,
        variant,
        _settings(plan),
        spherical=plan.spherical,
        sample_weight=block.weight,
        per_cluster=plan.per_cluster,
        device=plan.device,
    )


def _on(fused, places: np.ndarray):
    import torch

    return torch.as_tensor(np.array(places), dtype=fused.rows.dtype, device=fused.rows.device)


def _choose(block: Opened, wanted: Step) -> tuple[np.ndarray, np.ndarray]:
    """Every row's best centre and its cost there, as the fused engine finds them."""
    import torch

    fused = _fused(block, wanted.plan)
    centers = _on(fused, wanted.places)
    with torch.no_grad():
        if wanted.plan.spherical or wanted.plan.device != "cpu":
            chosen, costs = fused.choose(centers)
            return chosen.cpu().numpy(), costs.cpu().numpy()
        labels = single_pass.assign(block.X, wanted.places, n_threads=1).astype(np.int64)  # the same, and faster
        chosen = torch.from_numpy(labels)
        pieces = fused.rows.blocks(len(centers))
        own = [fused.rows.own_sq_distances(piece, centers, chosen[piece]).double() for piece in pieces]
        return labels, torch.cat(own).numpy()


def _moved(block: Opened, wanted: Step) -> Moved:
    assert wanted.previous is not None
    X = np.ascontiguousarray(block.X[:: max(1, len(block.X) // _SAMPLE)])
    now, before = (single_pass.assign(X, places, n_threads=1) for places in (wanted.places, wanted.previous))
    return Moved(len(X), int(np.count_nonzero(now != before)))
