"""The network as a torch module: the parameters, how they begin, and where gradients go.

What is computed from the parameters is written once for torch and numpy, in :mod:`coterie.zeroshot.network.blocks` and
:mod:`~coterie.zeroshot.network.two_passes`.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import nn

from coterie.zeroshot.features.description import (
    COORDINATES,
    LOGIT_UNIT,
    PAIR_FEATURES,
    POINT_FEATURES,
    SECOND_PAIR_FEATURES,
    SECOND_POINT_FEATURES,
    Description,
)
from coterie.zeroshot.network import two_passes
from coterie.zeroshot.network.head import (
    CANDIDATE_FEATURES,
    CLUSTER_FEATURES,
    HEAD,
    CandidateFeatures,
    flattened,
    scores,
)
from coterie.zeroshot.network.interface import RANDOM_FEATURES, Answer
from coterie.zeroshot.network.two_passes import BINS, TwoPassConfig
from coterie_research.training.zeroshot.gradients import TrainedTensors


class PairChannels(nn.Module):
    """Parameters of :func:`coterie.zeroshot.network.blocks.pair_channels`."""

    def __init__(self, width: int, channels: int, features: int):
        super().__init__()
        self.pair = nn.Linear(features, channels)
        self.looker = nn.Linear(width, channels, bias=False)
        self.other = nn.Linear(width, channels, bias=False)


class Layer(nn.Module):
    """Parameters of :func:`coterie.zeroshot.network.blocks.layer`, which is the identity before training."""

    def __init__(self, width: int, mlp_ratio: int):
        super().__init__()
        self.norm_attention = nn.LayerNorm(width)
        self.query_key_value = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)
        self.norm_mlp = nn.LayerNorm(width)
        self.up = nn.Linear(width, mlp_ratio * width)
        self.down = nn.Linear(mlp_ratio * width, width)
        for last in (self.output, self.down):
            nn.init.zeros_(last.weight)
            nn.init.zeros_(last.bias)


class Stretch(nn.Module):
    """Parameters of :func:`coterie.zeroshot.network.blocks.stretch`."""

    def __init__(self, width: int, n_heads: int, n_layers: int, mlp_ratio: int, channels: int, features: int):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.channels = PairChannels(width, channels, features)
        self.steering = nn.Linear(channels, n_layers * n_heads, bias=False)
        self.layers = nn.ModuleList(Layer(width, mlp_ratio) for _ in range(n_layers))


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


class Counts(nn.Module):
    """Logits of the number of clusters, from tokens and from what the affinities say of it."""

    def __init__(self, width: int):
        super().__init__()
        self.hidden = nn.Sequential(nn.Linear(2 * width + 6, 2 * width), nn.GELU())
        self.clusters = nn.Linear(2 * width, len(BINS))
        self.single = nn.Linear(2 * width, 1)


class PartitionHead(nn.Module):
    """Parameters of ``partitions.candidates.scores``, which gives the expected index before training."""

    def __init__(self, width: int):
        super().__init__()
        self.cluster = nn.Linear(CLUSTER_FEATURES, width)
        self.again = nn.Linear(width, width)
        self.whole = nn.Linear(3 * width + CANDIDATE_FEATURES, 2 * width)
        self.score = nn.Linear(2 * width, 1)
        nn.init.zeros_(self.score.weight)
        nn.init.zeros_(self.score.bias)


class TwoPassNetwork(nn.Module):
    """Descriptions of sets to an :class:`Answer` for each of two passes; the order of the points does not matter."""

    describe = staticmethod(two_passes.describe)
    clusters_proba = staticmethod(two_passes.clusters_proba)

    def __init__(self, config: TwoPassConfig):
        super().__init__()
        self.config = config
        E, P = config.width, config.pair_channels
        self.points = nn.Linear(POINT_FEATURES, E)
        self.coordinates = nn.Linear(COORDINATES, E, bias=False)
        self.random = nn.Linear(RANDOM_FEATURES, E, bias=False)
        self.first = Pass(config, config.first, PAIR_FEATURES, 2 * P)
        self.again = nn.Linear(SECOND_POINT_FEATURES, E)
        self.second = Pass(config, config.second, PAIR_FEATURES + SECOND_PAIR_FEATURES, 2 * P)
        with torch.no_grad():  # before training, the second pass repeats the first
            for constant in (self.second.alike.weight, self.second.alike.bias, self.second.same.bias):
                constant.zero_()
            self.second.same_at_once.weight[0, PAIR_FEATURES] = LOGIT_UNIT
        self.noise = nn.Linear(E, 1)
        self.counts = Counts(E)
        if config.partition_width:
            self.partitions = PartitionHead(config.partition_width)

    def forward(self, seen: list[Description], rng: np.random.Generator) -> list[Answer]:
        return two_passes.forward(TrainedTensors(self.points.weight.device), self, seen, rng)

    @torch.no_grad()
    def answer(self, seen: list[Description], rng: np.random.Generator) -> Answer:
        return Answer(*(TrainedTensors.numpy(part) for part in self(seen, rng)[-1]))

    @property
    def head(self) -> np.ndarray:
        return flattened({name: TrainedTensors.numpy(weight) for name, weight in self.state_dict().items()})

    def scores(self, told: CandidateFeatures) -> torch.Tensor:
        """Logits of the adjusted Rand index of candidate partitions, with gradients."""
        xp = TrainedTensors(self.points.weight.device)
        return scores(xp, self.partitions, CandidateFeatures(*(xp.array(part) for part in told)))

    def copy_into(self, network: "TwoPassNetwork") -> None:
        """Let a network of the same sizes begin with these weights, but for its head, which is trained at the end."""
        weights = {name: weight for name, weight in self.state_dict().items() if not name.startswith(HEAD)}
        sizes = [replace(each.config, partition_width=0, choice=(), single=()) for each in (network, self)]
        if sizes[0] != sizes[1]:
            raise ValueError(
                f"A network must have the sizes of the one as which it begins: {sizes[1]}, got {sizes[0]}."
            )
        network.load_state_dict(weights, strict=False)


def build(config: dict[str, Any]) -> TwoPassNetwork:
    """A network from the settings on its card."""
    return TwoPassNetwork(TwoPassConfig.from_card(config))
