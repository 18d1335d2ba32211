"""The zero-shot network of version 0.1.0, ``zeroshot``: one pass over distances and five hierarchies, to 16 clusters.

It is kept for inference alone. ``w`` are its weights, ``xp`` the operations on arrays or tensors.
"""

import sys
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import softmax

from coterie.zeroshot.features.description import (
    NEIGHBOURS,
    Description,
    Geometry,
    coordinate_features,
    point_features,
    principal_coordinates,
    round_clusters,
    set_features,
)
from coterie.zeroshot.features.hierarchies import hierarchies
from coterie.zeroshot.features.pairs import MERGE_FEATURES, room
from coterie.zeroshot.network import blocks as layers
from coterie.zeroshot.network.blocks import evidence_of_number, pair_channels, stretch
from coterie.zeroshot.network.interface import MAX_CLUSTERS, Answer, stacked
from coterie.zeroshot.network.loading import ArrayNetwork, checked

PAIR_FEATURES = 1 + 5 * MERGE_FEATURES
POINT_FEATURES = NEIGHBOURS + 4
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
    partition_width: ClassVar[int] = 0  # there is no head for partitions

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def sizes(w: Any) -> dict[str, Any]:
    """The settings that follow from the weights."""
    n_stretches, n_clusters = len(w.stretches), w.clusters[2].weight.shape[0]
    depth = len(w.stretches[0].layers)
    return {**layers.sizes(w.stretches[0]), "n_stretches": n_stretches, "stretch": depth, "max_clusters": n_clusters}


def from_card(settings: dict[str, Any]) -> ZeroShotConfig:
    values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in settings.items()}
    return ZeroShotConfig(**values)


def build(config: dict[str, Any], arrays: dict[str, np.ndarray], device: str) -> ArrayNetwork:
    """A network from the settings on its card and its weights, for inference."""
    return checked(ArrayNetwork(sys.modules[__name__], from_card(config), arrays, device))


def describe(x_ND: np.ndarray) -> Description:
    """Describe at least two points whose columns are on comparable scales."""
    n, dims = x_ND.shape
    x_ND = x_ND - x_ND.mean(axis=0)
    geometry = Geometry(cdist(x_ND, x_ND))
    pairs = room(PAIR_FEATURES, n)
    geometry.write(hierarchies(geometry.distance_NN, geometry.cores), pairs)
    principal_ND = principal_coordinates(x_ND)[0]
    points_NT = point_features([geometry.near_NR], set_features(n, dims, geometry))
    return Description(points_NT, coordinate_features(principal_ND), pairs, principal_ND)


def forward(xp: Any, w: Any, seen: list[Description], rng: np.random.Generator) -> list[Answer]:
    """Two passes with the same weights: the second in the geometry of the first, and its logits the mean of both.

    The network was trained for the first pass alone; the second improves it without training.
    """
    first = _pass(xp, w, seen, rng)
    again = []
    for each, p_NN in zip(seen, xp.numpy(xp.sigmoid(first.natural_BNN)).astype(np.float64)):
        np.fill_diagonal(p_NN, 1.0)
        again.append(describe(round_clusters(each.principal_ND, p_NN)))
    second = _pass(xp, w, again, rng)
    same_BNN = (first.same_BNN + second.same_BNN) / 2
    noise_BN, clusters_BK = (first.noise_BN + second.noise_BN) / 2, (first.clusters_BK + second.clusters_BK) / 2
    return [first, Answer(same_BNN, naturally_weighted(xp, same_BNN), noise_BN, clusters_BK, clusters_BK[:, 0])]


def clusters_proba(answer: Answer) -> np.ndarray:
    """(B, 100) probabilities of 1, 2, ... clusters; this network tells none above 16 apart."""
    known_BK = softmax(answer.clusters_BK, axis=-1)
    return np.pad(known_BK, ((0, 0), (0, MAX_CLUSTERS - known_BK.shape[1])))


def _pass(xp: Any, w: Any, seen: list[Description], rng: np.random.Generator) -> Answer:
    points_BNT, coordinates_BNC, random_BNR, pairs = stacked(xp, seen, rng)
    pairs = xp.pairs(pairs)
    z_BNE = xp.linear(w.points, points_BNT) + xp.linear(w.coordinates, coordinates_BNC)
    z_BNE = z_BNE + xp.linear(w.random, random_BNR)
    for each in w.stretches:
        z_BNE = stretch(xp, each, z_BNE, pairs)
    z_BNE = xp.normed(w.norm, z_BNE)
    alike_BNE = xp.linear(w.alike, z_BNE) / z_BNE.shape[-1] ** 0.25
    (seen_B1NN,) = pair_channels(xp, w.last_channels, pairs, z_BNE, w.same.weight, w.same_at_once.weight)
    directed_BNN = alike_BNE @ alike_BNE.swapaxes(1, 2) + seen_B1NN[:, 0]
    same_BNN = (directed_BNN + directed_BNN.swapaxes(1, 2)) / 2 + w.same.bias
    # what the pairs themselves say of the number of clusters is given as features
    whole_BE = xp.concatenate([z_BNE.mean(1), xp.amax(z_BNE, 1), xp.stack(evidence_of_number(xp, same_BNN), -1)], -1)
    clusters_BK = xp.linear(w.clusters[2], xp.gelu(xp.linear(w.clusters[0], whole_BE), "none"))
    natural_BNN = naturally_weighted(xp, same_BNN)
    return Answer(same_BNN, natural_BNN, xp.linear(w.noise, z_BNE)[..., 0], clusters_BK, clusters_BK[:, 0])


def naturally_weighted(xp: Any, same_BNN: Any) -> Any:
    """Logits as if every pair had weighed alike in training, rather than a point's own cluster and the rest.

    A pair's odds were trained too high or low by how much rarer its point's own cluster is than the rest; how rare
    that is follows from the corrected affinities themselves, so that a few rounds are made.
    """
    n = same_BNN.shape[-1]
    natural_BNN = same_BNN
    for _ in range(ROUNDS):
        p_BNN = xp.sigmoid(natural_BNN)
        others_BN = xp.clip(p_BNN.sum(-1) - xp.diagonal(p_BNN, 0, 1, 2), 1, max(n - 2, 1))
        shift_BN = xp.log(others_BN / xp.clip(n - 1 - others_BN, 1, None)) / 2
        natural_BNN = same_BNN + (shift_BN[:, :, None] + shift_BN[:, None])
    return natural_BNN
