"""The network of the first generation: one pass over distances and five hierarchies, up to 16 clusters."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from coterie.zeroshot.answers import MAX_CLUSTERS, RANDOM_FEATURES, Answer, stacked
from coterie.zeroshot.description import (
    COORDINATES,
    PAIR_FEATURES,
    POINT_FEATURES,
    Description,
    describe,
    round_clusters,
)
from coterie.zeroshot.layers import PairChannels, Stretch

ROUNDS = 3  # of correcting affinities for the weights of the loss


@dataclass(frozen=True)
class ZeroShotConfig:
    width: int = 64
    n_heads: int = 4
    n_stretches: int = 2
    stretch: int = 3  # layers that share a reading of the pairs
    mlp_ratio: int = 2
    pair_channels: int = 16
    max_clusters: int = 16
    # weights of ``labels.choice_features``, fitted to fresh problems once the network is trained
    choice: tuple[float, ...] = (1.0, 0.0, 0.0)
    # The network takes overlapping clusters for one, as it was trained on shapes: P(1) = 0.8 counts as one half.
    single: tuple[float, ...] = (1.0, -1.386, 0.0)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


class ZeroShotNetwork(nn.Module):
    """Points, described by themselves and in pairs, to an :class:`Answer`; the order of the points does not matter."""

    describe = staticmethod(describe)

    def __init__(self, config: ZeroShotConfig):
        super().__init__()
        self.config = config
        E, P = config.width, config.pair_channels
        self.points = nn.Linear(POINT_FEATURES, E)
        self.coordinates = nn.Linear(COORDINATES, E, bias=False)
        self.random = nn.Linear(RANDOM_FEATURES, E, bias=False)
        self.stretches = nn.ModuleList(
            Stretch(E, config.n_heads, config.stretch, config.mlp_ratio, P, PAIR_FEATURES)
            for _ in range(config.n_stretches)
        )
        self.norm = nn.LayerNorm(E)
        self.last_channels = PairChannels(E, 2 * P, PAIR_FEATURES)
        self.alike = nn.Linear(E, E)
        self.same = nn.Linear(2 * P, 1)
        self.same_at_once = nn.Linear(PAIR_FEATURES, 1, bias=False)
        self.noise = nn.Linear(E, 1)
        self.clusters = nn.Sequential(nn.Linear(2 * E + 3, 2 * E), nn.GELU(), nn.Linear(2 * E, config.max_clusters))

    def forward(self, seen: list[Description], rng: np.random.Generator) -> list[Answer]:
        """Two passes with the same weights: the second in the geometry of the first, and its logits the mean of both.

        The network was trained for the first pass alone; the second improves it without training.
        """
        first = self._pass(seen, rng)
        again = []
        for each, natural_NN in zip(seen, first.natural_BNN):
            p_NN = natural_NN.detach().sigmoid().cpu().numpy().astype(np.float64)
            np.fill_diagonal(p_NN, 1.0)
            again.append(describe(round_clusters(each.principal_ND, p_NN)))
        second = self._pass(again, rng)
        same_BNN = (first.same_BNN + second.same_BNN) / 2
        noise_BN, clusters_BK = (first.noise_BN + second.noise_BN) / 2, (first.clusters_BK + second.clusters_BK) / 2
        return [first, Answer(same_BNN, naturally_weighted(same_BNN), noise_BN, clusters_BK, clusters_BK[:, 0])]

    def clusters_proba(self, answer: Answer) -> Tensor:
        """(B, 100) probabilities of 1, 2, ... clusters; this network tells none above 16 apart."""
        return F.pad(answer.clusters_BK.softmax(-1), (0, MAX_CLUSTERS - self.config.max_clusters))

    def _pass(self, seen: list[Description], rng: np.random.Generator) -> Answer:
        points_BNT, coordinates_BNC, random_BNR, pairs_BFNN = stacked(seen, rng, self.points.weight.device)
        z_BNE = self.points(points_BNT) + self.coordinates(coordinates_BNC) + self.random(random_BNR)
        for stretch in self.stretches:
            z_BNE = stretch(z_BNE, pairs_BFNN)
        z_BNE = self.norm(z_BNE)
        same_BNN = self._same(z_BNE, pairs_BFNN)
        clusters_BK = self._clusters(z_BNE, same_BNN)
        natural_BNN = naturally_weighted(same_BNN)
        return Answer(same_BNN, natural_BNN, self.noise(z_BNE)[..., 0], clusters_BK, clusters_BK[:, 0])

    def _same(self, z_BNE: Tensor, pairs_BFNN: Tensor) -> Tensor:
        alike_BNE = self.alike(z_BNE) / z_BNE.shape[-1] ** 0.25
        (seen_B1NN,) = self.last_channels(pairs_BFNN, z_BNE, self.same.weight, self.same_at_once.weight)
        directed_BNN = alike_BNE @ alike_BNE.mT + seen_B1NN[:, 0] + self.same.bias
        return (directed_BNN + directed_BNN.mT) / 2

    def _clusters(self, z_BNE: Tensor, same_BNN: Tensor) -> Tensor:
        """The distribution's logits; what the pairs themselves say of the number is given as features."""
        p_BNN = same_BNN.detach().sigmoid()
        companions_BN = p_BNN.sum(-1)
        doubt_B = (p_BNN * (1 - p_BNN)).mean((1, 2))
        count_B = (1 / companions_BN).sum(-1)
        hard_B = (1 / (p_BNN > 0.5).sum(-1).clamp_min(1)).sum(-1)
        told_B3 = torch.stack([count_B.log(), hard_B.log(), 10 * doubt_B], -1)
        return self.clusters(torch.cat([z_BNE.mean(1), z_BNE.amax(1), told_B3], -1))


def naturally_weighted(same_BNN: Tensor) -> Tensor:
    """Logits as if every pair had weighed alike in training, rather than a point's own cluster and the rest.

    A pair's odds were trained too high or low by how much rarer its point's own cluster is than the rest; how rare
    that is follows from the corrected affinities themselves, so that a few rounds are made.
    """
    n = same_BNN.shape[-1]
    natural_BNN = same_BNN
    for _ in range(ROUNDS):
        p_BNN = natural_BNN.sigmoid()
        others_BN = (p_BNN.sum(-1) - p_BNN.diagonal(dim1=1, dim2=2)).clamp(1, max(n - 2, 1))
        shift_BN = (others_BN / (n - 1 - others_BN).clamp_min(1)).log() / 2
        natural_BNN = same_BNN + shift_BN[:, :, None] + shift_BN[:, None]
    return natural_BNN
