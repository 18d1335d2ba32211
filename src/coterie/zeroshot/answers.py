"""What a zero-shot network says of sets of points, and what it reads, as tensors.

Shapes: B data sets, N points, T features of a point, C coordinates, R random features, F features of a pair.
"""

from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from coterie.zeroshot.description import Description

RANDOM_FEATURES = 8
MAX_CLUSTERS = 100


class Answer(NamedTuple):
    """Logits of one pass over B sets.

    ``same_BNN`` was trained with a point's own cluster and the rest weighing alike, so that small clusters count;
    ``natural_BNN`` with every pair weighing alike, so that its probabilities hold (corrected in the first generation).
    """

    same_BNN: Tensor  # two points share a cluster
    natural_BNN: Tensor
    noise_BN: Tensor  # a point belongs to no cluster
    clusters_BK: Tensor  # number of clusters: 1, 2, ... in the first generation, else 2, 3, ... in bins
    single_B: Tensor  # there is one cluster


class Network(Protocol):
    """What the networks of both generations have in common. A call returns an answer for every pass."""

    config: Any

    def describe(self, x_ND: np.ndarray) -> Description: ...

    def __call__(self, seen: list[Description], rng: np.random.Generator) -> list[Answer]: ...

    def clusters_proba(self, answer: Answer) -> Tensor:
        """(B, 100) probabilities of 1, 2, ... clusters."""


def stacked(
    seen: list[Description], rng: np.random.Generator, device: torch.device
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Sets of equal size as tensors, with fresh random features and signs of the coordinates."""

    def together(parts: list[np.ndarray]) -> Tensor:
        return torch.from_numpy(parts[0][None] if len(parts) == 1 else np.stack(parts)).to(device)

    points_BNT = together([each.points_NT for each in seen])
    coordinates_BNC = together([each.coordinates_NC for each in seen])
    pairs_BFNN = together([each.pairs_FNN for each in seen])
    B, N, C = coordinates_BNC.shape
    flips_B1C = torch.from_numpy(rng.choice(np.array([-1, 1], dtype=np.float32), size=(B, 1, C))).to(device)
    random_BNR = torch.from_numpy(rng.normal(size=(B, N, RANDOM_FEATURES)).astype(np.float32)).to(device)
    return points_BNT, coordinates_BNC * flips_B1C, random_BNR, pairs_BFNN
