"""EM for a mixture of densities that are networks: the two steps that ``em.run`` alternates.

A flexible network memorises its rows, and then keeps whatever it was given. With ``folds=2`` the rows are therefore
divided into two halves, every cluster has one network per half, and a row is judged by the networks that were trained
on the *other* half (cross-fitting). The mean bound is then a held-out bound, by which runs can be compared.
``folds=1`` is the plain algorithm, which needs no cross-fitting if all networks see all rows from the beginning.

Shapes: N rows, D columns, K clusters, F folds, G = F * K networks with fold f's at f * K to (f + 1) * K, S samples.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from coterie.generative import data_parallel
from coterie.generative.evidence import Neighbours, with_neighbours, with_votes
from coterie.generative.vaes import Densities

_ROWS_PER_BLOCK = 1024
_DEAD_SHARE = 0.05  # of an equal share: below it a cluster is started again


@dataclass(frozen=True)
class EMSettings:
    """Settings of the two steps. Bounds are in nats."""

    n_clusters: int
    folds: int = 2
    n_epochs: float = 2.0  # per M-step
    first_epochs: float = 20.0  # of the first M-step, when the networks know nothing yet
    least_steps: int = 1  # of an M-step, for small tables
    shared_batches: bool = False  # all networks see every batch, weighted; otherwise each has batches of its own rows
    batch_size: int = 64
    learning_rate: float = 4e-3
    rate_decay: float = 1.0  # factor of the learning rate after every decay_iter iterations
    decay_iter: int = 20
    n_samples: int = 10
    temperature: float = 1.0  # of the first E-step after the start; falls to 1 within anneal_iter iterations
    anneal_iter: int = 0
    learned_shares: bool = True
    start_evidence: bool = False  # the start is evidence in every E-step; needs folds=2
    threshold: float = 1e-3  # a row is not shown to a network whose responsibility for it is smaller
    screen_gap: float = 20.0  # a cluster whose bound with one sample is lower by more gets no further samples
    revive_until: int = 0  # last iteration in which an empty cluster is started again
    move_until: int = 0  # last iteration in which a split-and-merge move is tried
    move_every: int = 2  # iterations from one try to the next
    seed: int = 0

    @classmethod
    def from_random(cls, n_clusters: int, **changes: Any) -> "EMSettings":
        """For responsibilities that know nothing yet: many short iterations, in which no network may get far ahead."""
        settings: dict[str, Any] = {
            "folds": 1,
            "shared_batches": True,
            "batch_size": 128,
            "first_epochs": cls.n_epochs,
            "learning_rate": 1e-3,
            "rate_decay": 0.9,
            "n_samples": 1,
        }
        return cls(n_clusters, **{**settings, **changes})

    def with_moves(self, n_iter: int) -> "EMSettings":
        """For ``n_iter`` iterations with new networks, which try split-and-merge moves in the first two thirds."""
        return replace(
            self,
            first_epochs=20.0,
            rate_decay=0.8,
            decay_iter=5,
            start_evidence=False,
            revive_until=0,
            move_until=min(2 * n_iter // 3, n_iter - 1),
        )


@dataclass
class State:
    """What one iteration passes to the next. The M-step trains the networks in place."""

    networks: Densities
    optimizer: torch.optim.Optimizer
    log_shares_K: Tensor
    iteration: int = 0
    refused: tuple[tuple[int, int], ...] = ()  # moves since the last accepted one, as (merged, split)

    def to_dict(self) -> dict[str, Any]:
        return {
            "networks": self.networks.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "log_shares": self.log_shares_K,
            "iteration": self.iteration,
            "refused": [list(move) for move in self.refused],
        }

    def load(self, saved: dict[str, Any]) -> None:
        self.networks.load_state_dict(saved["networks"])
        self.optimizer.load_state_dict(saved["optimizer"])
        self.log_shares_K, self.iteration = saved["log_shares"].to(self.log_shares_K), saved["iteration"]
        self.refused = tuple((merged, split) for merged, split in saved.get("refused", ()))  # older files have none


@dataclass(frozen=True)
class Expectation:
    """Responsibilities and quantities for monitoring."""

    responsibilities_NK: Tensor
    labels: np.ndarray
    objective: float  # mean bound of log p(x), held out if there are two folds; NaN for the start
    entropy: float  # of the responsibilities, mean over rows, in nats
    moved: float  # share of the rows whose most likely cluster has changed
    revived: tuple[int, ...] = ()
    move: tuple[int, int] | None = None  # the clusters that were merged and split before this E-step
    settled: bool = True  # whether no cluster was started again and no move is left to try

    @property
    def shares_K(self) -> Tensor:
        return self.responsibilities_NK.mean(0)

    def summary(self) -> str:
        if math.isnan(self.objective):  # the start's shares: nothing has been trained yet
            return "from the start"
        return f"bound {self.objective:.5g}, entropy {self.entropy:.3f}"


class Mixture:
    """The rows, their folds, and the two steps. ``neighbours`` are evidence in every E-step, and need two folds."""

    def __init__(self, x_ND: Tensor, start_NK: Tensor, settings: EMSettings, neighbours: Neighbours | None = None):
        self.x_ND, self.settings, self.neighbours = x_ND, settings, neighbours
        self.start_NK = start_NK.to(x_ND)
        self.fold_N = torch.randperm(len(x_ND), generator=self.generator(0, "folds")).to(x_ND.device) % settings.folds
        self.labels = self.start_NK.argmax(1)  # of the last E-step

    def begin(self, networks: Densities) -> State:
        optimizer = torch.optim.Adam(networks.parameters(), lr=self.settings.learning_rate, fused=True)
        return State(networks, optimizer, self._log_shares(self.start_NK))

    # --- E-step ---------------------------------------------------------------------------------------------

    def e_step(self, state: State) -> Expectation:
        """The start at first; then softmax over the bounds of the networks that a row did not train."""
        if state.iteration == 0:
            return self._expectation(self.start_NK, float("nan"))
        return self.expectation(state, self.log_joint(state))

    def expectation(self, state: State, log_joint_NK: Tensor) -> Expectation:
        """Responsibilities from log share + bound, (N, K)."""
        responsibilities_NK = (log_joint_NK / self._temperature(state.iteration)).softmax(1)
        if self.neighbours is not None:
            responsibilities_NK = with_neighbours(log_joint_NK, self.neighbours)
        elif self.settings.start_evidence:
            responsibilities_NK = with_votes(log_joint_NK, self.start_NK)
        evidence_N = log_joint_NK.logsumexp(1)
        revived: tuple[int, ...] = ()
        if state.iteration < self.settings.revive_until:
            revived = self._revive(responsibilities_NK, evidence_N)
        return self._expectation(responsibilities_NK, evidence_N.double().mean().item(), revived)

    @torch.no_grad()
    def log_joint(self, state: State) -> Tensor:
        """log share + bound, (N, K), every row by the networks of the other fold."""
        s = self.settings
        result_NK = self.x_ND.new_zeros(len(self.x_ND), s.n_clusters)
        for fold in range(s.folds):
            judge = (fold + 1) % s.folds * s.n_clusters
            blocks = torch.nonzero(self.fold_N == fold).flatten().split(_ROWS_PER_BLOCK)
            for number in data_parallel.own_share(len(blocks)):
                rows = blocks[number]
                # the same in every iteration: what moves a row is then the networks, not chance
                generator = self.generator(number, "noise")
                size = (s.n_samples, 1, len(rows), state.networks.noise_size)
                noise_S1BL = torch.randn(size, generator=generator).to(self.x_ND)
                which = range(judge, judge + s.n_clusters)
                given = noise_S1BL, state.log_shares_K, which, s.screen_gap
                result_NK[rows] = screened_bounds(state.networks, self.x_ND[rows], *given).T
        return data_parallel.total(result_NK) + state.log_shares_K

    def _temperature(self, iteration: int) -> float:
        left = max(0.0, 1 - (iteration - 1) / max(1, self.settings.anneal_iter))
        return self.settings.temperature**left if self.settings.anneal_iter else 1.0

    def _expectation(self, responsibilities_NK: Tensor, objective: float, revived=()) -> Expectation:
        labels = responsibilities_NK.argmax(1)
        moved = (labels != self.labels).double().mean().item()
        self.labels = labels
        entropy = torch.special.entr(responsibilities_NK).sum(1).double().mean().item()
        labels_N = labels.cpu().numpy()
        return Expectation(responsibilities_NK, labels_N, objective, entropy, moved, revived, settled=not revived)

    def _revive(self, responsibilities_NK: Tensor, evidence_N: Tensor) -> tuple[int, ...]:
        """Give empty clusters the rows with the lowest evidence, half an equal share each."""
        n_rows, n_clusters = responsibilities_NK.shape
        shares_K = responsibilities_NK.mean(0)
        dead = torch.nonzero(shares_K < _DEAD_SHARE / n_clusters).flatten().tolist()
        size = max(1, n_rows // (2 * n_clusters))
        worst = evidence_N.topk(min(n_rows, size * len(dead)), largest=False).indices if dead else evidence_N[:0]
        for number, cluster in enumerate(dead):  # in turn, so that each gets some of the lowest
            rows = worst[number :: len(dead)]
            responsibilities_NK[rows] = 0
            responsibilities_NK[rows, cluster] = 1
        return tuple(dead)

    # --- M-step ---------------------------------------------------------------------------------------------

    def m_step(self, state: State, expectation: Expectation) -> State:
        """Adam on the weighted bound, every network on batches of its own rows or all on the same ones."""
        for cluster in expectation.revived:
            self._restart(state, cluster)
        for group in state.optimizer.param_groups:
            group["lr"] = self._learning_rate(state.iteration)
        generator = self.generator(state.iteration, "steps")
        dropout = self.generator(state.iteration, "dropout")  # its own: processes draw it for parts of unequal length
        batches = self._shared_batches if self.settings.shared_batches else self._own_batches
        for rows, weights_GB in batches(expectation.responsibilities_NK, state.iteration, generator):
            noise = torch.randn(1, *weights_GB.shape, state.networks.noise_size, generator=generator).to(self.x_ND)
            part = data_parallel.own_slice(weights_GB.shape[1])
            bound_GB = state.networks.bound(self.x_ND[rows[..., part]], noise[:, :, part], dropout=dropout)
            total_G1 = weights_GB.sum(1, keepdim=True).clamp_min(1e-12)
            loss = -(bound_GB * weights_GB[:, part] / total_G1).sum()
            state.optimizer.zero_grad()
            loss.backward()
            data_parallel.add_gradients(state.networks.parameters())
            state.optimizer.step()
        shares_K = self._log_shares(expectation.responsibilities_NK)
        return State(state.networks, state.optimizer, shares_K, state.iteration + 1, state.refused)

    def _shared_batches(
        self, responsibilities_NK: Tensor, iteration: int, generator
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Rows (B,), or (G, B) with the networks of each fold on rows of that fold, and their weights (G, B)."""
        s = self.settings
        pools = [torch.nonzero(self.fold_N == fold).flatten() for fold in range(s.folds)]
        size = min(s.batch_size, max(map(len, pools)))
        n_steps = self._n_steps(iteration, sum(map(len, pools)) / (s.folds * size))
        rows_FT = torch.stack([_cycle(pool, n_steps * size, generator) for pool in pools])
        for rows_FB in rows_FT.split(size, 1):
            weights_GB = responsibilities_NK[rows_FB].transpose(1, 2).flatten(0, 1)
            yield rows_FB[0] if s.folds == 1 else rows_FB.repeat_interleave(s.n_clusters, 0), weights_GB

    def _n_steps(self, iteration: int, steps_per_epoch: float) -> int:
        s = self.settings
        epochs = s.n_epochs if iteration else s.first_epochs
        least = s.least_steps * (1 if iteration else round(s.first_epochs / s.n_epochs))
        return max(least, math.ceil(epochs * steps_per_epoch))

    def _own_batches(self, responsibilities_NK: Tensor, iteration: int, generator) -> Iterator[tuple[Tensor, Tensor]]:
        """Rows (G, B) and their weights. All networks take equally many steps, whatever their number of rows."""
        s = self.settings
        pools = [
            torch.nonzero((self.fold_N == fold) & (responsibilities_NK[:, cluster] >= s.threshold)).flatten()
            for fold in range(s.folds)
            for cluster in range(s.n_clusters)
        ]
        size = min(s.batch_size, max(map(len, pools)))
        n_steps = self._n_steps(iteration, sum(map(len, pools)) / (len(pools) * size))
        rows_GT = torch.stack([_cycle(pool, n_steps * size, generator) for pool in pools])
        cluster_G = torch.arange(s.n_clusters, device=rows_GT.device).repeat(s.folds)
        weights_GT = responsibilities_NK[rows_GT, cluster_G[:, None]]
        weights_GT = weights_GT * torch.tensor([len(pool) > 0 for pool in pools], device=rows_GT.device)[:, None]
        yield from zip(rows_GT.split(size, 1), weights_GT.split(size, 1))

    def _restart(self, state: State, cluster: int) -> None:
        """New weights for a cluster's networks."""
        fresh = state.networks.fresh(self.settings.folds, self.generator(state.iteration, f"restart {cluster}"))
        self.replace_networks(state, [cluster], fresh)

    def replace_networks(self, state: State, clusters: list[int], new: Densities) -> None:
        """Other weights for the networks of some clusters, and an optimiser that has forgotten the old ones."""
        which = self.networks_of(clusters)
        with torch.no_grad():
            for weight, other in zip(state.networks.parameters(), new.parameters()):
                weight[which] = other.to(weight)
                for moment in ("exp_avg", "exp_avg_sq"):
                    if moment in state.optimizer.state.get(weight, {}):
                        state.optimizer.state[weight][moment][which] = 0

    def networks_of(self, clusters: list[int]) -> list[int]:
        """Numbers of the networks of some clusters, fold by fold."""
        return [
            fold * self.settings.n_clusters + cluster for fold in range(self.settings.folds) for cluster in clusters
        ]

    def _log_shares(self, responsibilities_NK: Tensor) -> Tensor:
        if not self.settings.learned_shares:
            return self.x_ND.new_full((self.settings.n_clusters,), -math.log(self.settings.n_clusters))
        return responsibilities_NK.double().mean(0).clamp_min(1e-8).log().to(self.x_ND)

    def _learning_rate(self, iteration: int) -> float:
        return self.settings.learning_rate * self.settings.rate_decay ** (iteration // self.settings.decay_iter)

    # --- randomness -----------------------------------------------------------------------------------------

    def generator(self, iteration: int, use: str) -> torch.Generator:
        """A function of seed, iteration and use: a resumed run draws what it would have drawn."""
        entropy = (self.settings.seed, iteration, *use.encode())
        seed = int(np.random.SeedSequence(entropy).generate_state(1, np.uint64)[0]) >> 1
        return torch.Generator().manual_seed(seed)


def screened_bounds(
    networks: Densities, x_BD: Tensor, noise_S1BL: Tensor, log_shares_K: Tensor, which: range, gap: float
) -> Tensor:
    """Bounds (K, B) with one sample, and with all of them where more than one cluster is within ``gap`` of the best."""
    each = [slice(network, network + 1) for network in which]  # one by one: their outputs then fit into the cache
    bounds_KB = torch.cat([networks.bound(x_BD, noise_S1BL[:1], network) for network in each])
    n_samples = len(noise_S1BL)
    if n_samples == 1 or len(which) == 1:
        return bounds_KB
    joint_KB = bounds_KB + log_shares_K[:, None]
    open_KB = joint_KB >= joint_KB.amax(0) - gap
    open_KB &= open_KB.sum(0) > 1
    for cluster, network in enumerate(each):
        rows = torch.nonzero(open_KB[cluster]).flatten()
        if len(rows):
            rest_B = networks.bound(x_BD[rows], noise_S1BL[1:, :, rows], network)[0]
            bounds_KB[cluster, rows] += (rest_B - bounds_KB[cluster, rows]) * (1 - 1 / n_samples)
    return bounds_KB


def _cycle(pool: Tensor, length: int, generator: torch.Generator) -> Tensor:
    """``length`` entries of the pool, all of them once before any comes again; zeros if it is empty."""
    if not len(pool):
        return pool.new_zeros(length)
    rounds = [torch.randperm(len(pool), generator=generator) for _ in range(-(-length // len(pool)))]
    return pool[torch.cat(rounds)[:length].to(pool.device)]
