"""The first zero-shot network as a torch module, and how the second one begins as it."""

from typing import Any

import torch
from torch import Tensor, nn

from coterie.zeroshot.features.description import COORDINATES, NEIGHBOURS
from coterie.zeroshot.network.interface import RANDOM_FEATURES
from coterie.zeroshot.network.two_passes import BINS
from coterie_research.training.zeroshot.modules import Counts, Network, PairChannels, Stretch, TwoPassNetwork
from coterie_research.zeroshot_one import network as one_pass
from coterie_research.zeroshot_one.network import PAIR_FEATURES, POINT_FEATURES, ZeroShotConfig


class ZeroShotNetwork(Network):
    """Parameters of :func:`coterie_research.zeroshot_one.network.forward`."""

    architecture = one_pass

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

    @torch.no_grad()
    def copy_into(self, network: TwoPassNetwork) -> None:
        """Let the first pass of a new network begin as this one, which reads a part of what the new network reads.

        With weight zero on everything else, and a second pass that repeats the first, the new network gives the same
        balanced affinities before its training begins, which would otherwise take hours to reach.
        """
        first = network.first
        config, small = network.config, self.config
        shape = (small.width, small.n_heads, (small.stretch,) * small.n_stretches, small.pair_channels, small.mlp_ratio)
        if (config.width, config.n_heads, config.first, config.pair_channels, config.mlp_ratio) != shape:
            raise ValueError(
                "A network that begins as one of the first generation needs the same width, heads, layers of the first "
                f"pass, channels and ratio: {shape}, got {config}."
            )
        points = torch.zeros_like(network.points.weight)
        points[:, :NEIGHBOURS] = self.points.weight[:, :NEIGHBOURS]
        points[:, 2 * NEIGHBOURS : NEIGHBOURS + POINT_FEATURES] = self.points.weight[:, NEIGHBOURS:]
        network.points.weight.copy_(points)
        network.points.bias.copy_(self.points.bias)
        alike: list[tuple[nn.Module, nn.Module]] = [
            (network.coordinates, self.coordinates),
            (network.random, self.random),
            (network.noise, self.noise),
            (first.stretches, self.stretches),
            (first.norm, self.norm),
            (first.channels, self.last_channels),
            (first.alike, self.alike),
            (first.same, self.same),
            (first.same_at_once, self.same_at_once),
        ]
        for mine, its in alike:
            weights = {name: _widened(value, PAIR_FEATURES, first.features) for name, value in its.state_dict().items()}
            mine.load_state_dict(weights)
        _grow_counts(network.counts, self)


def build(config: dict[str, Any]) -> ZeroShotNetwork:
    """A network from the settings on its card."""
    return ZeroShotNetwork(one_pass.from_card(config))


def _grow_counts(counts: Counts, old: ZeroShotNetwork) -> None:
    """The number of clusters: numbers above those that the old network tells apart begin as its largest."""
    weights = old.clusters.state_dict()
    hidden, hidden_bias, cluster, cluster_bias = (
        weights[name] for name in ("0.weight", "0.bias", "2.weight", "2.bias")
    )
    more = counts.hidden.state_dict()["0.weight"].shape[1]
    counts.hidden.load_state_dict({"0.weight": _widened(hidden, hidden.shape[1], more), "0.bias": hidden_bias})
    rows = torch.tensor([min(number, len(cluster_bias)) - 1 for number in BINS])
    counts.clusters.load_state_dict({"weight": cluster[rows], "bias": cluster_bias[rows]})
    counts.single.load_state_dict(
        {
            "weight": cluster[:1] - cluster[1:].mean(0, keepdim=True),
            "bias": cluster_bias[:1] - cluster_bias[1:].mean() - 2.0,
        }
    )


def _widened(value: Tensor, features: int, more: int) -> Tensor:
    """Weights with zeros for the features that are new."""
    if value.ndim == 2 and value.shape[1] == features:
        return torch.nn.functional.pad(value, (0, more - features))
    return value
