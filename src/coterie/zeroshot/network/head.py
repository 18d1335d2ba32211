"""The head of the network, which scores candidate partitions, and its weights as one array.

For each candidate, it estimates the adjusted Rand index with the true clusters from the mean affinities within and
between its clusters, from how well it agrees with all affinities, and from its number of clusters. It corrects the
index that the affinities themselves expect, and was trained on the index that is reached. The order of the clusters and
that of the points do not matter.

Shapes: J candidates, K clusters, C features of a cluster, G features of a candidate, H hidden units.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from coterie.zeroshot.network.numpy_operations import Weights

CLUSTER_FEATURES = 9
CANDIDATE_FEATURES = 9
ABSENT = 1e4  # larger than any hidden unit
HEAD = "partitions."  # how the names of a head's weights begin in those of a network


class CandidateFeatures(NamedTuple):
    """Input features of J candidate partitions. Those with fewer than K clusters are padded."""

    clusters_JKC: Any
    share_JK: Any  # of the points
    is_there_JK: Any  # 1 for clusters, 0 for padding
    whole_JG: Any
    expected_J: Any  # logit of the adjusted Rand index that affinities expect


def scores(xp: Any, w: Any, told: CandidateFeatures) -> Any:
    """(J,) logits of the adjusted Rand index of the candidates; ``w`` are the weights of the head."""
    hidden_JKH = xp.gelu(xp.linear(w.again, xp.gelu(xp.linear(w.cluster, told.clusters_JKC), "tanh")), "tanh")
    is_there_JK1 = told.is_there_JK[..., None]
    pooled = [
        (hidden_JKH * told.share_JK[..., None]).sum(1),
        (hidden_JKH * is_there_JK1).sum(1) / is_there_JK1.sum(1),
        xp.amax(hidden_JKH - ABSENT * (1 - is_there_JK1), 1),
        told.whole_JG,
    ]
    whole_JH = xp.gelu(xp.linear(w.whole, xp.concatenate(pooled, -1)), "tanh")
    return told.expected_J + xp.linear(w.score, whole_JH)[:, 0]


def shapes(width: int) -> dict[str, tuple[int, ...]]:
    """The weights of a head by name."""
    inputs = {
        "cluster": (width, CLUSTER_FEATURES),
        "again": (width, width),
        "whole": (2 * width, 3 * width + CANDIDATE_FEATURES),
        "score": (1, 2 * width),
    }
    return {
        f"{name}.{part}": size[:rank] for name, size in inputs.items() for part, rank in (("weight", 2), ("bias", 1))
    }


def flattened(arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    """The weights of the head among those of a network, as one array; empty if it has none."""
    found = {name.removeprefix(HEAD): array for name, array in arrays.items() if name.startswith(HEAD)}
    if not found:
        return np.zeros(0, np.float32)
    expected = shapes(len(found["again.bias"]))
    if {name: array.shape for name, array in found.items()} != expected:
        raise ValueError(f"the weights of the head for partitions must have the shapes {expected}")
    return np.concatenate([found[name].ravel() for name in expected]).astype(np.float32)


def unflattened(head: np.ndarray) -> Weights:
    """The weights of a head by their names."""
    expected = shapes(width_of(len(head)))
    ends = np.cumsum([int(np.prod(shape)) for shape in expected.values()])
    parts = np.split(head, ends[:-1])
    return Weights({name: part.reshape(shape) for (name, shape), part in zip(expected.items(), parts)})


def width_of(n_weights: int) -> int:
    """The width of a head with so many weights."""
    for width in range(1, n_weights + 1):
        total = sum(int(np.prod(shape)) for shape in shapes(width).values())
        if total >= n_weights:
            break
    if n_weights == 0 or total != n_weights:
        raise ValueError(f"no head for partitions has {n_weights} weights")
    return width
