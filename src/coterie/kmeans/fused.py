"""The fused engine: the same layers as the literal one, without the self-attention that provably cancels.

Limiting self-attention finds each token itself, so residual and self-attention add up to zero in the directions that
the cross-attention writes (see ``weights.layer``). What is left of a layer is

    encoder: every point scores k centres and chooses          (n, k) scores, in blocks of rows
    decoder: every centre takes the weighted mean of its points (see ``members``)

in O(n·k·d) time and bounded memory, on any torch device. Points may require gradients: for finite gamma (soft k-means,
and the weights of robust k-means) the result is differentiable in points and centres.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from coterie import em
from coterie.attention import gumbel_noise
from coterie.kmeans import engine, member_weights
from coterie.kmeans.engine import Centers
from coterie.kmeans.family import Variant
from coterie.kmeans.lazy import Assigner
from coterie.kmeans.refill import refill
from coterie.kmeans.result import Result
from coterie.kmeans.rows import DenseRows, SparseRows, rows_of
from coterie.kmeans.transformer import unit
from coterie.kmeans.weights import Settings


@dataclass(frozen=True)
class Assigned:
    """Hard assignments: every point's centre, its cost there, and its weight in that centre's mean."""

    labels: Tensor  # (n,) the chosen centre; -1 for a trimmed point
    chosen: Tensor  # (n,) the chosen centre, also for a trimmed point
    cost: Tensor  # (n,) float64, at the chosen centre
    weight: Tensor  # (n,) float64
    objective: float
    limits: Tensor | None = None  # (k,) the largest cost that trimming keeps


@dataclass(frozen=True)
class Shared:
    """Soft assignments, already summed over the points."""

    labels: Tensor  # (n,) the centre with the largest share
    sums: Tensor  # (k, d) float64
    counts: Tensor  # (k,) float64
    objective: float  # Σ shares · ‖x - c‖²


class Fused:
    """One variant of the family on one data set X: array, tensor or CSR matrix (n, d). Weights must be positive."""

    def __init__(
        self,
        X,
        variant: Variant,
        settings: Settings,
        *,
        spherical: bool = False,
        sample_weight=None,
        per_cluster: bool = True,
        device: str | torch.device = "cpu",
        assigner: Assigner | None = None,
    ):
        self.rows: DenseRows | SparseRows = rows_of(X, device)
        self.variant, self.settings = variant, settings
        self.spherical, self.per_cluster = spherical, per_cluster
        self.weight = torch.ones(self.rows.n, dtype=torch.float64, device=self.rows.device)
        if sample_weight is not None:
            self.weight = torch.as_tensor(np.asarray(sample_weight), dtype=torch.float64, device=self.rows.device)
        self.labels_decide = variant.centers in ("limiting", "norm-max")
        self.assigner = assigner

    def cost(self, block: slice, centers: Tensor) -> Tensor:
        """(b, k): the negative scores: ‖x - c‖², or 1 - ⟨x, c⟩ = ‖x - c‖²/2 on the sphere."""
        return 1 - self.rows.dot(block, centers) if self.spherical else self.rows.sq_distances(block, centers)

    def e_step(self, state: Centers) -> Assigned | Shared:
        return self._share(state) if self.variant.points == "softmax" else self._assign(state)

    def m_step(self, state: Centers, expectation: Any) -> Centers:
        if self.variant.centers == "gumbel":
            return Centers(self._drawn(state, expectation))
        soft = isinstance(expectation, Shared)
        sums, counts = (expectation.sums, expectation.counts) if soft else self._means(state, expectation)
        filled = counts > 0
        places = torch.where(
            filled.unsqueeze(-1), sums / torch.where(filled, counts, 1.0).unsqueeze(-1), state.places.double()
        )
        places = unit(places) if self.spherical else places
        weights = None if state.weights is None else counts / counts.sum()
        return Centers(places.to(self.rows.dtype), weights)

    def choose(self, centers: Tensor) -> tuple[Tensor, Tensor]:
        """(n,) every point's best centre (the lowest index of equals) and its accurate cost there, float64.

        An assigner of the lazy engine remembers bounds from call to call and skips what cannot have changed.
        """
        blocks = self.rows.blocks(len(centers))
        if self.assigner is not None:
            chosen = torch.from_numpy(self.assigner.assign(centers.numpy())).long()
        else:
            chosen = torch.cat([self.cost(block, centers).argmin(-1) for block in blocks])
        sq_distances = [self.rows.own_sq_distances(block, centers, chosen[block]).double() for block in blocks]
        return chosen, torch.cat(sq_distances) / (2 if self.spherical else 1)

    def _assign(self, state: Centers) -> Assigned:
        chosen, cost = self.choose(state.places)
        k, settings = len(state.places), self.settings
        if self.variant.centers == "norm-max":
            limits = member_weights.thresholds(chosen, cost, self.weight, k, settings.keep, self.per_cluster)
            inside = cost <= limits[chosen]
            weight = self.weight * inside
            objective = float((weight * cost.detach()).sum())
            return Assigned(torch.where(inside, chosen, -1), chosen, cost, weight, objective, limits)
        weight = self.weight
        if self.variant.centers != "gumbel":
            weight = member_weights.member_weights(self.variant.centers, chosen, cost, weight, k, settings)
        return Assigned(chosen, chosen, cost, weight, float((self.weight * cost.detach()).sum()))

    def _drawn(self, state: Centers, assigned: Assigned) -> Tensor:
        """One row a centre, drawn by Gumbel noise (Algorithm 6), centre by centre so that memory stays at O(n)."""
        generator = self.settings.generator or torch.Generator().manual_seed(0)
        drawn = []
        for j, center in enumerate(state.places):
            blocks = self.rows.blocks(1)
            log_p = -torch.cat([self.cost(block, center.unsqueeze(0)).squeeze(1).double() for block in blocks])
            log_p = log_p - 2.0 * self.settings.delta * (assigned.chosen != j) + self.weight.log()
            drawn.append((log_p + gumbel_noise(log_p.shape, log_p, generator)).argmax())
        return self.rows.x[torch.stack(drawn)]  # dense only

    def _means(self, state: Centers, assigned: Assigned) -> tuple[Tensor, Tensor]:
        k = len(state.places)
        sums = torch.zeros(k, self.rows.d, dtype=torch.float64, device=self.rows.device)
        for block in self.rows.blocks(k):
            sums = sums + self.rows.sums(block, assigned.chosen[block], assigned.weight[block], k)
        counts = assigned.weight.new_zeros(k).index_add(0, assigned.chosen, assigned.weight)
        if bool((counts <= 0).any()):
            sums, counts = self._refilled(assigned, sums, counts)
        return sums, counts

    def _refilled(self, assigned: Assigned, sums: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
        fill = refill if self.variant.centers == "limiting" else engine.fill_empty
        new_sums, new_counts = sums.detach().cpu().numpy(), counts.detach().cpu().numpy()
        fill(
            self.rows.numpy(),
            assigned.labels.cpu().numpy(),
            assigned.cost.detach().cpu().numpy(),
            new_sums,
            new_counts,
            self.weight.cpu().numpy(),
        )
        return torch.from_numpy(new_sums).to(sums.device), torch.from_numpy(new_counts).to(sums.device)

    def shares(self, block: slice, state: Centers) -> tuple[Tensor, Tensor]:
        """(b, k) responsibilities of soft k-means, and costs. A mixing weight is how often a centre counts as a key."""
        cost = self.cost(block, state.places)
        logits = -self.settings.gamma * cost
        if state.weights is not None:
            logits = logits + state.weights.log().to(logits.dtype)
        return logits.softmax(-1), cost

    def _share(self, state: Centers) -> Shared:
        sums: Any = 0.0
        counts: Any = 0.0
        objective, labels = 0.0, []
        for block in self.rows.blocks(len(state.places)):
            shares, cost = self.shares(block, state)
            labels.append(shares.argmax(-1))
            shares = shares.double() * self.weight[block].unsqueeze(-1)
            sums = sums + self.rows.mixed(block, shares)
            counts = counts + shares.sum(0)
            objective += float((shares * cost).detach().sum())
        return Shared(torch.cat(labels), sums, counts, objective)


def run(
    X,
    centers,
    variant: Variant,
    settings: Settings,
    *,
    mixing_weights=None,
    max_iter: int = 300,
    tol: float = 0.0,
    on_iteration: Callable[[em.Iteration], Any] | None = None,
    **kind,
) -> Result:
    """Fit on arrays. ``kind``: the keywords of ``Fused``. ``mixing_weights`` (k,): where estimated ones begin."""
    fused = Fused(X, variant, settings, **kind)
    places = torch.as_tensor(np.array(centers), dtype=fused.rows.dtype, device=fused.rows.device)
    if mixing_weights is not None:
        mixing_weights = torch.as_tensor(np.array(mixing_weights), dtype=torch.float64, device=fused.rows.device)
    with torch.no_grad():
        ended = engine.run(fused, places, weights=mixing_weights, max_iter=max_iter, tol=tol, on_iteration=on_iteration)
    return engine.as_result(*ended)


def forward(x: Tensor, centers: Tensor, variant: Variant, settings: Settings, n_layers: int, **kind) -> Tensor:
    """``n_layers`` layers on tensors that may require gradients; the final centres."""
    fused = Fused(x, variant, settings, **kind)
    state = Centers(centers)
    for _ in range(n_layers):
        state = fused.m_step(state, fused.e_step(state))
    return state.places
