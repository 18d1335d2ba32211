"""Input and output of a zero-shot network.

Shapes: B data sets, N points, T features of a point, C coordinates, R random features, F features of a pair.
"""

from typing import Any, NamedTuple, Protocol

import numpy as np

from coterie.zeroshot.features.description import Description
from coterie.zeroshot.features.pairs import Pairs

RANDOM_FEATURES = 8
MAX_CLUSTERS = 100


class Answer(NamedTuple):
    """Logits of one pass over B sets, as arrays or tensors.

    ``same_BNN`` was trained with a point's own cluster and the rest weighing alike, so that small clusters count;
    ``natural_BNN`` with every pair weighing alike, so that its probabilities hold.
    """

    same_BNN: Any  # two points share a cluster
    natural_BNN: Any
    noise_BN: Any  # a point belongs to no cluster
    clusters_BK: Any  # number of clusters: 2, 3, ... in bins
    single_B: Any  # there is one cluster


class Network(Protocol):
    """What every network has, by numpy and by torch."""

    config: Any

    @property
    def head(self) -> np.ndarray:
        """Weights of the head for partitions as one array (``network.head.flattened``)."""

    def describe(self, x_ND: np.ndarray) -> Description:
        """Features of a set of points and of its pairs."""

    def answer(self, seen: list[Description], rng: np.random.Generator) -> Answer:
        """The output of its last pass, as numpy arrays."""

    def clusters_proba(self, answer: Answer) -> np.ndarray:
        """(B, 100) probabilities of 1, 2, ... clusters, from an answer in numpy arrays."""


def stacked(xp: Any, seen: list[Description], rng: np.random.Generator) -> tuple[Any, Any, Any, Pairs]:
    """Sets of equal size as arrays, with fresh random features and signs of the coordinates; pairs in numpy."""
    points_BNT = xp.array(_together([each.points_NT for each in seen]))
    coordinates_BNC = xp.array(_together([each.coordinates_NC for each in seen]))
    pairs = Pairs(*(_together(list(parts)) for parts in zip(*(each.pairs for each in seen))))
    B, N, C = coordinates_BNC.shape
    flips_B1C = xp.array(rng.choice(np.array([-1, 1], dtype=np.float32), size=(B, 1, C)))
    random_BNR = xp.array(rng.normal(size=(B, N, RANDOM_FEATURES)).astype(np.float32))
    return points_BNT, coordinates_BNC * flips_B1C, random_BNR, pairs


def _together(parts: list[np.ndarray]) -> np.ndarray:
    return parts[0][None] if len(parts) == 1 else np.stack(parts)
