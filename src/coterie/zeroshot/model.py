"""The network of the second generation: two passes over the points of a set, the second in the geometry of the first.

Shapes: B data sets, N points, E width, H heads, F features of a pair, P channels of a pair, K bins of numbers.

Points are tokens. Attention is over all points, its scores grow with log N so that it does not dilute, and a head's
score for a pair adds channels of the pair's features, gated by the tokens. Nothing depends on the order of the points
or on their number. Random features on every token tell equal clusters apart; coordinates help.

After the first pass every pair has an affinity. From it follow the covariance within clusters, distances and
hierarchies in the space where that is a sphere, and a hierarchy of the affinities themselves
(:func:`coterie.zeroshot.description.describe_again`). The second pass goes on with the tokens of the first and reads
these features as well; no gradient goes through them.
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from coterie.zeroshot import generation_one
from coterie.zeroshot.answers import MAX_CLUSTERS, RANDOM_FEATURES, Answer, stacked
from coterie.zeroshot.description import (
    COORDINATES,
    FULL_PAIR_FEATURES,
    FULL_POINT_FEATURES,
    LOGIT_UNIT,
    SECOND_PAIR_FEATURES,
    SECOND_POINT_FEATURES,
    Description,
    describe_again,
    describe_fully,
)
from coterie.zeroshot.layers import PairChannels, Stretch

# first number of clusters of every bin of the distribution over 2, 3, ... 100 clusters
BINS = (*range(2, 17), 17, 21, 26, 33, 41, 52, 66, 82)


@dataclass(frozen=True)
class TwoPassConfig:
    width: int = 96
    n_heads: int = 4
    first: tuple[int, ...] = (3,)  # layers of every stretch of the first pass; a stretch reads the pairs once
    second: tuple[int, ...] = (2, 2)
    mlp_ratio: int = 2
    pair_channels: int = 16
    # how the evidence for the number of clusters is weighed, fitted to fresh problems once the network is trained
    choice: tuple[float, ...] = (1.0, 0.0, 0.0)
    single: tuple[float, ...] = (1.0, 0.0, 1.0)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


class Pass(nn.Module):
    """Stretches of layers, then the logits of every pair."""

    def __init__(self, config: TwoPassConfig, layers: tuple[int, ...], features: int, last_channels: int):
        super().__init__()
        E, P = config.width, config.pair_channels
        self.features = features
        self.stretches = nn.ModuleList(
            Stretch(E, config.n_heads, count, config.mlp_ratio, P, features) for count in layers
        )
        self.norm = nn.LayerNorm(E)
        self.channels = PairChannels(E, last_channels, features)
        self.alike = nn.Linear(E, E)
        self.same = nn.Linear(last_channels, 1)
        self.same_at_once = nn.Linear(features, 1, bias=False)
        self.shift = nn.Linear(E, 1)
        self.scale = nn.Parameter(torch.ones(()))
        nn.init.zeros_(self.same.weight)
        nn.init.zeros_(self.same_at_once.weight)
        nn.init.zeros_(self.shift.weight)

    def forward(self, z_BNE: Tensor, pairs_BFNN: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Tokens, the same normalised, and the logits of pairs: balanced, natural."""
        pairs_BFNN = pairs_BFNN[:, : self.features]
        for stretch in self.stretches:
            z_BNE = stretch(z_BNE, pairs_BFNN)
        normed_BNE = self.norm(z_BNE)
        alike_BNE = self.alike(normed_BNE) / normed_BNE.shape[-1] ** 0.25
        (seen_B1NN,) = self.channels(pairs_BFNN, normed_BNE, self.same.weight, self.same_at_once.weight)
        directed_BNN = torch.baddbmm(seen_B1NN[:, 0], alike_BNE, alike_BNE.mT)
        same_BNN = (directed_BNN + directed_BNN.mT) / 2 + self.same.bias
        shift_BN1 = self.shift(normed_BNE)
        return z_BNE, normed_BNE, same_BNN, self.scale * same_BNN + (shift_BN1 + shift_BN1.mT)


class Counts(nn.Module):
    """Logits of the number of clusters, from tokens and from what the affinities say of it."""

    def __init__(self, width: int):
        super().__init__()
        self.hidden = nn.Sequential(nn.Linear(2 * width + 6, 2 * width), nn.GELU())
        self.clusters = nn.Linear(2 * width, len(BINS))
        self.single = nn.Linear(2 * width, 1)

    def forward(self, z_BNE: Tensor, same_BNN: Tensor, natural_BNN: Tensor) -> tuple[Tensor, Tensor]:
        told = [*_told(same_BNN), *_told(natural_BNN)]
        hidden_BE = self.hidden(torch.cat([z_BNE.mean(1), z_BNE.amax(1), torch.stack(told, -1)], -1))
        return self.clusters(hidden_BE), self.single(hidden_BE)[:, 0]


def _told(logit_BNN: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """What affinities say of the number of clusters: its logarithm, the same from hard affinities, and doubt."""
    p_BNN = logit_BNN.detach().sigmoid()
    hard_BN = (p_BNN > 0.5).sum(-1).clamp_min(1)
    doubt_B = (p_BNN * (1 - p_BNN)).mean((1, 2))
    return (1 / p_BNN.sum(-1)).sum(-1).log(), (1 / hard_BN).sum(-1).log(), 10 * doubt_B


class TwoPassNetwork(nn.Module):
    """Descriptions of sets to an :class:`Answer` for each of two passes; the order of the points does not matter."""

    describe = staticmethod(describe_fully)

    def __init__(self, config: TwoPassConfig):
        super().__init__()
        self.config = config
        E, P = config.width, config.pair_channels
        self.points = nn.Linear(FULL_POINT_FEATURES, E)
        self.coordinates = nn.Linear(COORDINATES, E, bias=False)
        self.random = nn.Linear(RANDOM_FEATURES, E, bias=False)
        self.first = Pass(config, config.first, FULL_PAIR_FEATURES, 2 * P)
        self.again = nn.Linear(SECOND_POINT_FEATURES, E)
        self.second = Pass(config, config.second, FULL_PAIR_FEATURES + SECOND_PAIR_FEATURES, 2 * P)
        with torch.no_grad():  # before training, the second pass repeats the first
            for constant in (self.second.alike.weight, self.second.alike.bias, self.second.same.bias):
                constant.zero_()
            self.second.same_at_once.weight[0, FULL_PAIR_FEATURES] = LOGIT_UNIT
        self.noise = nn.Linear(E, 1)
        self.counts = Counts(E)

    def forward(self, seen: list[Description], rng: np.random.Generator) -> list[Answer]:
        points_BNT, coordinates_BNC, random_BNR, pairs_BFNN = stacked(seen, rng, self.points.weight.device)
        z_BNE = self.points(points_BNT) + self.coordinates(coordinates_BNC) + self.random(random_BNR)
        z_BNE, *first = self.first(z_BNE, pairs_BFNN)
        z_BNE = z_BNE + self.again(self._describe_again(seen, pairs_BFNN, first[1], first[2]))
        z_BNE, *second = self.second(z_BNE, pairs_BFNN)
        return [
            Answer(
                same_BNN, natural_BNN, self.noise(normed_BNE)[..., 0], *self.counts(normed_BNE, same_BNN, natural_BNN)
            )
            for normed_BNE, same_BNN, natural_BNN in (first, second)
        ]

    def clusters_proba(self, answer: Answer) -> Tensor:
        """(B, 100) probabilities of 1, 2, ... clusters, the numbers of a bin alike."""
        ends = torch.tensor([*BINS[1:], MAX_CLUSTERS + 1])
        width_K = (ends - torch.tensor(BINS)).to(answer.clusters_BK.device)
        share_BK = answer.clusters_BK.softmax(-1) / width_K
        one_B1 = answer.single_B.sigmoid()[:, None]
        return torch.cat([one_B1, (1 - one_B1) * share_BK.repeat_interleave(width_K, -1)], -1)

    def _describe_again(
        self, seen: list[Description], pairs_BFNN: Tensor, same_BNN: Tensor, natural_BNN: Tensor
    ) -> Tensor:
        """Write the features of the second pass to the end of ``pairs_BFNN``; returns those of points."""
        balanced_BNN, logit_BNN = (logit.detach().cpu().numpy() for logit in (same_BNN, natural_BNN))
        points = []
        room_BFNN = pairs_BFNN.data  # autograd kept the other features only
        for each, balanced_NN, logit_NN, pairs_FNN in zip(seen, balanced_BNN, logit_BNN, room_BFNN):
            again_FNN = np.empty((SECOND_PAIR_FEATURES, *logit_NN.shape), dtype=np.float32)
            points.append(describe_again(each.principal_ND, logit_NN, balanced_NN, again_FNN))
            pairs_FNN[FULL_PAIR_FEATURES:] = torch.from_numpy(again_FNN)
        return torch.from_numpy(np.stack(points)).to(pairs_BFNN.device)


def build(config: dict[str, Any]) -> nn.Module:
    """A network from the settings on its card, of either generation."""
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in config.items()
    }
    if "n_stretches" in config:
        return generation_one.ZeroShotNetwork(generation_one.ZeroShotConfig(**values))
    return TwoPassNetwork(TwoPassConfig(**values))
