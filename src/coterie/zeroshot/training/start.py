"""A new network begins as an older one: as one of its own generation, or its first pass as one of the first generation.

A network of the first generation reads a part of what the new one reads. With weight zero on everything else, and a
second pass that repeats the first, the new network gives the same balanced affinities before its training begins, which
would otherwise take hours to reach. A network of its own generation may have fewer layers and narrower feed-forward
networks: new layers are the identity, and what new hidden units compute has weight zero.
"""

import torch
from torch import Tensor, nn

from coterie.zeroshot.features.description import NEIGHBOURS, PAIR_FEATURES, POINT_FEATURES
from coterie.zeroshot.network.torch_modules import Counts, TwoPassNetwork, ZeroShotNetwork
from coterie.zeroshot.network.two_passes import BINS


def begin_as(network: TwoPassNetwork, old: ZeroShotNetwork | TwoPassNetwork) -> None:
    """Copy the weights of ``old`` into ``network``."""
    if isinstance(old, ZeroShotNetwork):
        grow(network, old)
    else:
        enlarge(network, old)


@torch.no_grad()
def enlarge(network: TwoPassNetwork, old: TwoPassNetwork) -> None:
    """Copy the weights of ``old`` into ``network``, which may have more layers and wider feed-forward networks.

    A head for partitions is not copied: it is trained when the rest of the network is.
    """
    config, small = network.config, old.config
    if (
        (config.width, config.n_heads, config.pair_channels) != (small.width, small.n_heads, small.pair_channels)
        or config.mlp_ratio < small.mlp_ratio
        or not _has_layers_of(config.first, small.first)
        or not _has_layers_of(config.second, small.second)
    ):
        raise ValueError(
            "A network that begins as a smaller one needs the same width, heads and channels, and at least its ratio "
            f"and its layers in every stretch: {small}, got {config}."
        )
    weights = network.state_dict()
    for name, value in old.state_dict().items():
        if name.startswith("partitions."):
            continue
        mine = weights[name]
        if name.endswith(".down.weight"):
            mine.zero_()  # of hidden units that are new
        mine[tuple(slice(length) for length in value.shape)] = value


@torch.no_grad()
def average(network: TwoPassNetwork, old: TwoPassNetwork, share: float) -> None:
    """Move every weight of ``network`` towards that of ``old``, by ``share`` of the way.

    A network that learned from few tables keeps more of what it knew if its weights are averaged with those it began
    with (Wortsman et al. 2022, "Robust fine-tuning of zero-shot models").
    """
    before = old.state_dict()
    for name, value in network.state_dict().items():
        if not name.startswith("partitions."):
            value.lerp_(before[name], share)


def _has_layers_of(stretches: tuple[int, ...], small: tuple[int, ...]) -> bool:
    return len(stretches) >= len(small) and all(more >= few for more, few in zip(stretches, small))


@torch.no_grad()
def grow(network: TwoPassNetwork, old: ZeroShotNetwork) -> None:
    """Copy the weights of ``old`` into ``network``, whose first pass must have the same width and layers."""
    first = network.first
    config, small = network.config, old.config
    shape = (small.width, small.n_heads, (small.stretch,) * small.n_stretches, small.pair_channels, small.mlp_ratio)
    if (config.width, config.n_heads, config.first, config.pair_channels, config.mlp_ratio) != shape:
        raise ValueError(
            "A network that begins as one of the first generation needs the same width, heads, layers of the first "
            f"pass, channels and ratio: {shape}, got {config}."
        )
    points = torch.zeros_like(network.points.weight)
    points[:, :NEIGHBOURS] = old.points.weight[:, :NEIGHBOURS]
    points[:, 2 * NEIGHBOURS : NEIGHBOURS + POINT_FEATURES] = old.points.weight[:, NEIGHBOURS:]
    network.points.weight.copy_(points)
    network.points.bias.copy_(old.points.bias)
    alike: list[tuple[nn.Module, nn.Module]] = [
        (network.coordinates, old.coordinates),
        (network.random, old.random),
        (network.noise, old.noise),
        (first.stretches, old.stretches),
        (first.norm, old.norm),
        (first.channels, old.last_channels),
        (first.alike, old.alike),
        (first.same, old.same),
        (first.same_at_once, old.same_at_once),
    ]
    for mine, its in alike:
        weights = {name: _widened(value, PAIR_FEATURES, first.features) for name, value in its.state_dict().items()}
        mine.load_state_dict(weights)
    _grow_counts(network.counts, old)


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
