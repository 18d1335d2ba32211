"""The network: two passes over the points of a set, the second in the geometry that the first suggests.

Shapes: B data sets, N points, E width, H heads, F features of a pair, P channels of a pair, K bins of numbers.

Points are tokens. Attention is over all points, its scores grow with log N so that it does not dilute, and a head's
score for a pair adds channels of the pair's features, gated by the tokens. Nothing depends on the order of the points
or on their number. Random features on every token tell equal clusters apart; coordinates help.

After the first pass every pair has an affinity. From it follow the covariance within clusters, distances and
hierarchies in the space where that is a sphere, and a hierarchy of the affinities themselves
(``features.description.describe_again``). The second pass goes on with the tokens of the first and reads
these features as well; no gradient goes through them.

``w`` are the weights, ``xp`` the operations on arrays or tensors.
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.special import expit, softmax

from coterie.zeroshot.features.description import Description, describe_again
from coterie.zeroshot.features.description import describe as describe  # what every such module has
from coterie.zeroshot.features.pairs import Pairs
from coterie.zeroshot.network import blocks as layers
from coterie.zeroshot.network.blocks import evidence_of_number, pair_channels, stretch
from coterie.zeroshot.network.interface import MAX_CLUSTERS, Answer, stacked

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
    partition_width: int = 0  # of the head that scores partitions; 0 for none
    # how the evidence for the number of clusters is weighed, fitted to fresh problems once the network is trained
    choice: tuple[float, ...] = (1.0, 0.0, 0.0)
    single: tuple[float, ...] = (1.0, 0.0, 1.0)

    @classmethod
    def from_card(cls, settings: dict[str, Any]) -> "TwoPassConfig":
        values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in settings.items()}
        return cls(**values)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def sizes(w: Any) -> dict[str, Any]:
    """The settings that follow from the weights."""
    first, second = (tuple(len(each.layers) for each in one.stretches) for one in (w.first, w.second))
    partition_width = len(w.partitions.again.bias) if hasattr(w, "partitions") else 0
    return {
        **layers.sizes(w.first.stretches[0]),
        "first": first,
        "second": second,
        "partition_width": partition_width,
    }


def forward(xp: Any, w: Any, seen: list[Description], rng: np.random.Generator) -> list[Answer]:
    """An answer after each of the two passes."""
    points_BNT, coordinates_BNC, random_BNR, pairs = stacked(xp, seen, rng)
    z_BNE = xp.linear(w.points, points_BNT) + xp.linear(w.coordinates, coordinates_BNC)
    z_BNE = z_BNE + xp.linear(w.random, random_BNR)
    z_BNE, *first = _pass(xp, w.first, z_BNE, pairs)
    z_BNE = z_BNE + xp.linear(w.again, _describe_again(xp, seen, pairs, first[1], first[2]))
    z_BNE, *second = _pass(xp, w.second, z_BNE, pairs)
    return [
        Answer(
            same_BNN,
            natural_BNN,
            xp.linear(w.noise, normed_BNE)[..., 0],
            *_counts(xp, w.counts, normed_BNE, same_BNN, natural_BNN),
        )
        for normed_BNE, same_BNN, natural_BNN in (first, second)
    ]


def clusters_proba(answer: Answer) -> np.ndarray:
    """(B, 100) probabilities of 1, 2, ... clusters, the numbers of a bin alike."""
    width_K = np.diff([*BINS, MAX_CLUSTERS + 1])
    share_BK = softmax(answer.clusters_BK, axis=-1) / width_K
    one_B1 = expit(answer.single_B)[:, None]
    return np.concatenate([one_B1, (1 - one_B1) * np.repeat(share_BK, width_K, axis=-1)], -1, dtype=np.float32)


def _pass(xp: Any, w: Any, z_BNE, pairs: Pairs) -> tuple[Any, Any, Any, Any]:
    """Tokens, the same normalised, and the logits of pairs: balanced, natural."""
    pairs = xp.pairs(pairs.reduced(w.same_at_once.weight.shape[1]))
    for each in w.stretches:
        z_BNE = stretch(xp, each, z_BNE, pairs)
    normed_BNE = xp.normed(w.norm, z_BNE)
    alike_BNE = xp.linear(w.alike, normed_BNE) / normed_BNE.shape[-1] ** 0.25
    (seen_B1NN,) = pair_channels(xp, w.channels, pairs, normed_BNE, w.same.weight, w.same_at_once.weight)
    directed_BNN = alike_BNE @ alike_BNE.swapaxes(1, 2) + seen_B1NN[:, 0]
    same_BNN = (directed_BNN + directed_BNN.swapaxes(1, 2)) / 2 + w.same.bias
    shift_BN1 = xp.linear(w.shift, normed_BNE)
    return z_BNE, normed_BNE, same_BNN, w.scale * same_BNN + (shift_BN1 + shift_BN1.swapaxes(1, 2))


def _counts(xp: Any, w: Any, z_BNE, same_BNN, natural_BNN) -> tuple[Any, Any]:
    """Logits of the number of clusters, from tokens and from affinities."""
    told_B6 = xp.stack([*evidence_of_number(xp, same_BNN), *evidence_of_number(xp, natural_BNN)], -1)
    whole_BE = xp.concatenate([z_BNE.mean(1), xp.amax(z_BNE, 1), told_B6], -1)
    hidden_BE = xp.gelu(xp.linear(w.hidden[0], whole_BE), "none")
    return xp.linear(w.clusters, hidden_BE), xp.linear(w.single, hidden_BE)[:, 0]


def _describe_again(xp: Any, seen: list[Description], pairs: Pairs, same_BNN, natural_BNN) -> Any:
    """Write the features of the second pass to the end of ``pairs``; returns those of points."""
    points = [
        describe_again(each.principal_ND, logit_NN, balanced_NN, Pairs(*(part[b] for part in pairs)))
        for b, (each, balanced_NN, logit_NN) in enumerate(zip(seen, xp.numpy(same_BNN), xp.numpy(natural_BNN)))
    ]
    return xp.array(np.stack(points))
