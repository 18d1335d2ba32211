"""The fused engine: the layers of the literal engine without the self-attention that provably cancels.

Limiting self-attention finds each token itself, so residual and self-attention add up to zero in the directions that
the cross-attention writes (see ``weights.layer``). What remains of a layer is

    encoder: every point scores k centres and chooses           (n, k) scores, in blocks of rows
    decoder: every centre takes the weighted mean of its points (see ``member_weights``)

in O(n·k·d) time and bounded memory, on any torch device. Points may require gradients: for finite gamma (soft k-means,
and the weights of robust k-means) the result is differentiable in points and centres.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from coterie.attention import gumbel_noise, normalise
from coterie.kmeans import iteration
from coterie.kmeans.algorithm import Algorithm
from coterie.kmeans.iteration import Centers, OnIteration, Result
from coterie.kmeans.lazy import Assigner
from coterie.kmeans.member_weights import member_weights, thresholds
from coterie.kmeans.rows import DenseRows, SparseRows, rows_of
from coterie.kmeans.transformer import unit
from coterie.kmeans.transport import Planner, bounds
from coterie.kmeans.transport_attention import entropic_weights
from coterie.kmeans.weights import normaliser

MOST_FAILURES = 3  # in a row, of moves of a centre whose smallest size is forced
LEAST_GAIN = 1e-4


@dataclass(frozen=True)
class Assigned:
    """Hard assignments: the centre of every point, its cost, and its weight in the mean of that centre."""

    labels: Tensor  # (n,) the chosen centre; -1 for a trimmed point
    chosen: Tensor  # (n,) the chosen centre, also for a trimmed point
    cost: Tensor  # (n,) float64, at the chosen centre
    weight: Tensor  # (n,) float64
    objective: float
    moved: float | None
    limits: Tensor | None = None  # (k,) the largest cost that trimming keeps


@dataclass(frozen=True)
class Shared:
    """Soft assignments, already summed over the points."""

    labels: Tensor  # (n,) the centre with the largest share
    sums: Tensor  # (k, d) float64
    counts: Tensor  # (k,) float64
    objective: float  # Σ shares · cost
    moved: float | None


class Fused:
    """One algorithm on one data set X, an array, tensor or CSR matrix (n, d). Weights must be positive.

    For dense rows on the CPU, an ``assigner`` of the lazy engine makes the hard assignments. It is exact and skips what
    cannot have changed since the last call.
    """

    def __init__(
        self,
        X,
        algorithm: Algorithm,
        *,
        sample_weight=None,
        device: str | torch.device = "cpu",
        assigner: Assigner | None = None,
        n_threads: int | None = None,
    ):
        self.rows: DenseRows | SparseRows = rows_of(X, device, n_threads)
        self.algorithm, self.assigner = algorithm, assigner
        self.labels_decide = algorithm.labels_decide
        self.weight = torch.ones(self.rows.n, dtype=torch.float64, device=self.rows.device)
        if sample_weight is not None:
            self.weight = torch.as_tensor(np.asarray(sample_weight), dtype=torch.float64, device=self.rows.device)
        self.planner: Planner | None = None  # of a row that bounds sizes, made for the first centres
        self.log_weights: Tensor | None = None  # of the centres, where soft sizes are bounded
        self.separate = False  # whether prices will be read: they are then as far from all points as possible
        self.generator = torch.Generator().manual_seed(algorithm.seed)
        self.labels: Tensor | None = None

    def state(self, centers, weights=None) -> Centers:
        """Centres (k, d) and, if any, mixing weights (k,) as tensors on the device of the rows."""
        places = torch.as_tensor(np.array(centers), dtype=self.rows.dtype, device=self.rows.device)
        if weights is not None:
            weights = torch.as_tensor(np.array(weights), dtype=torch.float64, device=self.rows.device)
        return Centers(places, weights)

    def cost(self, block: slice, centers: Tensor) -> Tensor:
        """The negative scores (b, k): ‖x - c‖², or 1 - ⟨x, c⟩ = ‖x - c‖²/2 on the sphere."""
        if self.algorithm.spherical:
            return 1 - self.rows.dot(block, centers)
        return self.rows.sq_distances(block, centers)

    def e_step(self, state: Centers) -> Assigned | Shared:
        return self._share(state) if self.algorithm.variant.soft else self._assign(state)

    def m_step(self, state: Centers, expectation: Any) -> Centers:
        if self.algorithm.draws:
            return Centers(self._drawn(state, expectation))
        soft = isinstance(expectation, Shared)
        sums, counts = (expectation.sums, expectation.counts) if soft else self._means(state, expectation)
        filled = counts > 0
        places = torch.where(
            filled.unsqueeze(-1), sums / torch.where(filled, counts, 1.0).unsqueeze(-1), state.places.double()
        )
        places = unit(places) if self.algorithm.spherical else places
        weights = None if state.weights is None else counts / counts.sum()
        return Centers(places.to(self.rows.dtype), weights)

    def choose(self, centers: Tensor) -> tuple[Tensor, Tensor]:
        """The best centre (n,) of every point, the lowest index in a tie, and its accurate cost as float64."""
        half = 2 if self.algorithm.spherical else 1
        if self.algorithm.variant.points == "transport":
            return self._plan(centers)
        if self.assigner is not None:
            chosen = torch.from_numpy(self.assigner.assign(centers.numpy())).long()
            sq_distances = torch.from_numpy(self.assigner.sq_distances())
            return chosen, sq_distances / half if half > 1 else sq_distances
        chosen = torch.cat([self.cost(block, centers).argmin(-1) for block in self.rows.blocks(len(centers))])
        return chosen, self._own_costs(centers, chosen)

    def _own_costs(self, centers: Tensor, chosen: Tensor) -> Tensor:
        blocks = self.rows.blocks(len(centers))
        own = [self.rows.own_sq_distances(block, centers, chosen[block]).double() for block in blocks]
        return torch.cat(own) / (2 if self.algorithm.spherical else 1)

    def _plan(self, centers: Tensor) -> tuple[Tensor, Tensor]:
        """The centre (n,) of every point within the bounds on sizes, -1 for an outlier, and its cost.

        Points that were not fitted follow the prices of the fit, one by one.
        """
        blocks = self.rows.blocks(len(centers))
        prices = self.algorithm.prices
        if prices is not None:
            priced = torch.as_tensor(prices, device=self.rows.device)
            chosen = torch.cat([(self.cost(block, centers) + priced).argmin(-1) for block in blocks])
            return chosen, self._own_costs(centers, chosen)
        if self.planner is None:
            self.planner = Planner(self.algorithm.sizes, self.rows.n, len(centers), self.algorithm.outliers)
        labels = self.planner.labels(lambda block: self.cost(block, centers).cpu().numpy(), blocks, self.separate)
        chosen = torch.from_numpy(labels).long().to(self.rows.device)
        return chosen, self._own_costs(centers, chosen.clamp(min=0))

    def _moved(self, labels: Tensor) -> float | None:
        before, self.labels = self.labels, labels
        return None if before is None else int(torch.count_nonzero(labels != before)) / len(labels)

    def _assign(self, state: Centers) -> Assigned:
        chosen, cost = self.choose(state.places)
        k = len(state.places)
        if self.planner is not None and self.planner.outside:
            weight, labels = self.weight * (chosen >= 0), chosen
            objective, limits = float((weight * cost).sum()), torch.from_numpy(self.planner.limits)
            return Assigned(labels, chosen.clamp(min=0), cost, weight, objective, self._moved(labels), limits)
        if self.algorithm.variant.centers == "norm-max":
            limits = thresholds(self.algorithm, chosen, cost, self.weight, k)
            inside = cost <= limits.index_select(0, chosen)
            weight, labels = self.weight * inside, torch.where(inside, chosen, -1)
            objective = float((weight * cost.detach()).sum())
            return Assigned(labels, chosen, cost, weight, objective, self._moved(labels), limits)
        weight = member_weights(self.algorithm, chosen, cost, self.weight, k)
        objective = float((self.weight * cost.detach()).sum())
        return Assigned(chosen, chosen, cost, weight, objective, self._moved(chosen))

    def _drawn(self, state: Centers, assigned: Assigned) -> Tensor:
        """Draw one row per centre with Gumbel noise (Algorithm 6), centre by centre so that memory stays at O(n)."""
        drawn = []
        for j, center in enumerate(state.places):
            blocks = self.rows.blocks(1)
            log_p = -torch.cat([self.cost(block, center.unsqueeze(0)).squeeze(1).double() for block in blocks])
            log_p = log_p - 2.0 * self.algorithm.delta * (assigned.chosen != j) + self.weight.log()
            drawn.append((log_p + gumbel_noise(log_p.shape, log_p, self.generator)).argmax())
        return self.rows.x[torch.stack(drawn)]  # dense only

    def _means(self, state: Centers, assigned: Assigned) -> tuple[Tensor, Tensor]:
        k = len(state.places)
        if self.assigner is not None:
            found = self.assigner.fresh_statistics(assigned.weight.numpy())
            sums, counts = torch.from_numpy(found.sums), torch.from_numpy(found.counts)
        else:
            sums = torch.zeros(k, self.rows.d, dtype=torch.float64, device=self.rows.device)
            for block in self.rows.blocks(k):
                sums = sums + self.rows.sums(block, assigned.chosen[block], assigned.weight[block], k)
            counts = assigned.weight.new_zeros(k).index_add(0, assigned.chosen, assigned.weight)
        if bool((counts <= 0).any()):
            sums, counts = self._refilled(assigned, sums, counts)
        return sums, counts

    def _refilled(self, assigned: Assigned, sums: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
        new_sums, new_counts = sums.detach().cpu().numpy(), counts.detach().cpu().numpy()
        iteration.refill_empty(
            self.algorithm,
            self.rows.numpy(),
            assigned.labels.cpu().numpy(),
            assigned.cost.detach().cpu().numpy(),
            new_sums,
            new_counts,
            self.weight.cpu().numpy(),
        )
        return torch.from_numpy(new_sums).to(sums.device), torch.from_numpy(new_counts).to(sums.device)

    def shares(self, block: slice, state: Centers) -> tuple[Tensor, Tensor]:
        """The memberships (b, k) of a block of points in the clusters, and the costs.

        A mixing weight is how often a centre counts as a key.
        """
        cost = self.cost(block, state.places)
        if self.algorithm.variant.points not in ("softmax", "sinkhorn"):
            return normalise(normaliser(self.algorithm.variant.points, self.algorithm)(-cost, state.weights)), cost
        assert self.algorithm.gamma is not None
        logits = -self.algorithm.gamma * cost
        if state.weights is not None:  # as logarithms, so that small weights do not underflow
            logits = logits + state.weights.log().to(logits.dtype)
        return logits.softmax(-1), cost

    def _within_sizes(self, state: Centers) -> Centers:
        """The state with the weights that bring the sums of shares within the bounds on sizes."""
        k = len(state.places)
        low, high = bounds(self.algorithm.sizes, self.rows.n, k)
        gamma = self.algorithm.gamma
        assert gamma is not None

        def logits():
            return (-gamma * self.cost(block, state.places).double().cpu() for block in self.rows.blocks(k))

        self.log_weights = entropic_weights(logits, self.rows.n, k, low, high, self.log_weights)
        return Centers(state.places, self.log_weights.softmax(-1).to(self.rows.device))

    def _share(self, state: Centers) -> Shared:
        if self.algorithm.variant.points == "sinkhorn":
            state = self._within_sizes(state)
        sums: Any = 0.0
        counts: Any = 0.0
        objective, parts = 0.0, []
        for block in self.rows.blocks(len(state.places)):
            shares, cost = self.shares(block, state)
            parts.append(shares.argmax(-1))
            shares = shares.double() * self.weight[block].unsqueeze(-1)
            sums = sums + self.rows.mixed(block, shares)
            counts = counts + shares.sum(0)
            objective += float((shares * cost).detach().sum())
        labels = torch.cat(parts)
        return Shared(labels, sums, counts, objective, self._moved(labels))


def _with_unwanted_centers_moved(fused: Fused, ran: Any, **loop: Any) -> Any:
    """The outcome after centres moved that no row would choose.

    A negative price says that rows are made to choose a centre, for its smallest size. If a run starts with a centre in
    a small group, the centre cannot leave it. It is tried at a row of the cluster with the largest costs instead.
    """
    rng, failures = np.random.default_rng(0), 0
    found: Any = fused.e_step(ran.state)
    while failures < min(MOST_FAILURES, len(ran.state.places)):
        assert fused.planner is not None
        kept, prices = fused.planner.prices_K, fused.planner.prices
        unwanted = int(np.argsort(prices)[failures])
        if prices[unwanted] >= 0:
            break
        chosen, cost = found.chosen.cpu(), found.cost.cpu() * (found.labels.cpu() >= 0)
        costs = torch.zeros(len(prices), dtype=torch.float64).index_add(0, chosen, cost)
        costs[unwanted] = 0
        own = (cost * (chosen == costs.argmax())).cumsum(0).numpy()
        if not own[-1] > 0:
            break
        places = ran.state.places.clone()
        places[unwanted] = fused.rows.row(int(np.searchsorted(own, rng.random() * own[-1])))
        tried = iteration.iterate(fused, Centers(places), **loop)
        there: Any = fused.e_step(tried.state)
        if there.objective < found.objective * (1 - LEAST_GAIN):
            ran, found, failures = replace(tried, n_iter=ran.n_iter + tried.n_iter), there, 0
        else:
            fused.planner.prices_K, failures = kept, failures + 1
    return ran


def run(
    X,
    centers,
    algorithm: Algorithm,
    *,
    max_iter: int = 300,
    tol: float = 0.0,
    on_iteration: OnIteration | None = None,
    **options,
) -> Result:
    """Fit on arrays. ``options`` are the keyword arguments of :class:`Fused`."""
    fused = Fused(X, algorithm, **options)
    equal = np.full(len(centers), 1.0 / len(centers)) if algorithm.mixing_weights else None
    with torch.no_grad():
        start = fused.state(centers, equal)
        ran = iteration.iterate(fused, start, max_iter=max_iter, tol=tol, on_iteration=on_iteration)
        if fused.planner is not None:
            ran = _with_unwanted_centers_moved(fused, ran, max_iter=max_iter, tol=tol)
        fused.separate = True
        last: Any = fused.e_step(ran.state)
    limits = getattr(last, "limits", None)
    weights = ran.state.weights
    if fused.log_weights is not None:
        weights = fused.log_weights.softmax(-1)
    return Result(
        centers=ran.state.places.cpu().numpy(),
        labels=last.labels.cpu().numpy().astype(np.int32),
        inertia=last.objective,
        n_iter=ran.n_iter,
        converged=ran.converged,
        gamma=algorithm.gamma,
        weights=None if weights is None else weights.cpu().numpy(),
        limits=None if limits is None else limits.cpu().numpy(),
        prices=None if fused.planner is None else fused.planner.prices,
    )
