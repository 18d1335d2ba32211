"""Learned Lloyd: the k-means transformer with three trained parameters per layer.

The parameters are trained to lower the inertia after T layers. In a layer of the constructed network, a centre moves to
the mean of the points that chose it. Three choices are made in this layer:

    gamma      how sharply points choose: the inverse temperature of the encoder's cross-attention
    step       how far a centre moves towards the mean; more than 1 overshoots
    momentum   how much of its last move it repeats

With gamma = ∞, step 1 and momentum 0, the layer is an iteration of Lloyd's algorithm. gamma is relative to the mean
difference between the squared distances to the second and the first centre of a point, so that the parameters mean the
same for every data set, scale and dimension.

Shapes: K centres, D dimensions.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from coterie import checkpoints
from coterie.kmeans.algorithm import Algorithm
from coterie.kmeans.family import TABLE
from coterie.kmeans.fused import Fused
from coterie.kmeans.iteration import Centers

NETWORK = "learned-lloyd-10"


@dataclass(frozen=True)
class LearnedLloydConfig:
    n_layers: int = 10
    first_gamma: float = 3.0  # of the first layer before training; the last has ``last_gamma``
    last_gamma: float = 30.0


class LearnedLloyd(nn.Module):
    """T layers, each with a gamma, a step and a momentum."""

    def __init__(self, config: LearnedLloydConfig):
        super().__init__()
        self.config = config
        ends = math.log(config.first_gamma), math.log(config.last_gamma)
        self.log_gamma = nn.Parameter(torch.linspace(*ends, config.n_layers))
        self.step = nn.Parameter(torch.ones(config.n_layers))
        self.momentum = nn.Parameter(torch.zeros(config.n_layers))


def run_layers(network: LearnedLloyd, X, centers, sample_weight=None, device: str | torch.device = "cpu") -> Tensor:
    """The centres after the last layer, on one data set of any size, which is read in blocks of rows."""
    soft = Fused(X, Algorithm(TABLE["soft"]), sample_weight=sample_weight, device=device)
    c_KD = torch.as_tensor(centers, dtype=soft.rows.dtype, device=soft.rows.device)
    before_KD = c_KD
    with torch.no_grad():
        for layer in range(network.config.n_layers):
            gamma, scale = float(network.log_gamma[layer].exp()), _mean_lead(soft, c_KD)
            if scale > 0:
                soft.algorithm = Algorithm(TABLE["soft"], gamma=gamma / scale)
            mean_KD = soft.m_step(Centers(c_KD), soft.e_step(Centers(c_KD))).places
            move_KD = network.step[layer] * (mean_KD - c_KD) + network.momentum[layer] * (c_KD - before_KD)
            before_KD, c_KD = c_KD, c_KD + move_KD
    return c_KD


def improved_start(X, centers, sample_weight=None, device: str = "cpu") -> np.ndarray:
    """The starting centres after the ten layers that come with the package."""
    network = checkpoints.load(NETWORK)
    return run_layers(network, X, centers, sample_weight, device).cpu().numpy()


def _mean_lead(soft: Fused, c_KD: Tensor) -> float:
    """The mean difference between the squared distances to the second and the first centre of a point."""
    if len(c_KD) == 1:
        return 0.0
    total = 0.0
    for block in soft.rows.blocks(len(c_KD)):
        near = soft.cost(block, c_KD).topk(2, dim=-1, largest=False).values.double()
        total += float(soft.weight[block] @ (near[:, 1] - near[:, 0]))
    return total / float(soft.weight.sum())


def build(config: dict[str, Any]) -> LearnedLloyd:
    return LearnedLloyd(LearnedLloydConfig(**config))
