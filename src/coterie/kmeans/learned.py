"""Learned Lloyd: the k-means transformer with three trained parameters per layer.

The parameters are trained to lower the inertia after T layers. In a layer of the constructed network, a centre moves to
the mean of the points that chose it. Three choices are made in this layer:

    gamma      how sharply points choose: the inverse temperature of the encoder's cross-attention
    step       how far a centre moves towards the mean; more than 1 overshoots
    momentum   how much of its last move it repeats

With gamma = ∞, step 1 and momentum 0, the layer is an iteration of Lloyd's algorithm. gamma is relative to the mean
difference between the squared distances to the second and the first centre of a point, so that the parameters mean the
same for every data set, scale and dimension.

Shapes: B data sets, N points, K centres, D dimensions.
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
from coterie.starts.batched import lloyd_step, sq_to_centers

SHIPPED = {5: "learned-lloyd-5", 10: "learned-lloyd-10"}


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

    def forward(self, x_BND: Tensor, c_BKD: Tensor, weight_BN: Tensor | None = None) -> list[Tensor]:
        """The centres after each layer. ``weight_BN`` is how often each point counts."""
        weight_BN = x_BND.new_ones(x_BND.shape[:2]) if weight_BN is None else weight_BN
        before_BKD, out = c_BKD, []
        for layer in range(self.config.n_layers):
            mean_BKD = soft_means(x_BND, c_BKD, self.log_gamma[layer].exp(), weight_BN)
            move_BKD = self.step[layer] * (mean_BKD - c_BKD) + self.momentum[layer] * (c_BKD - before_BKD)
            before_BKD, c_BKD = c_BKD, c_BKD + move_BKD
            out.append(c_BKD)
        return out


def soft_means(x_BND: Tensor, c_BKD: Tensor, gamma: Tensor, weight_BN: Tensor) -> Tensor:
    """The weighted mean of the points per centre after a soft assignment. A centre without points does not move."""
    sq_BNK = sq_to_centers(x_BND, c_BKD)
    if c_BKD.shape[1] == 1:
        shares_BNK = weight_BN.unsqueeze(-1)
    else:
        near_BN2 = sq_BNK.topk(2, dim=-1, largest=False).values
        lead_BN = near_BN2[..., 1] - near_BN2[..., 0]
        scale_B = (weight_BN * lead_BN).sum(-1) / weight_BN.sum(-1)
        scale_B11 = scale_B.clamp(min=torch.finfo(sq_BNK.dtype).tiny)[:, None, None]
        shares_BNK = (-gamma * sq_BNK / scale_B11).softmax(-1) * weight_BN.unsqueeze(-1)
    counts_BK1 = shares_BNK.sum(1).unsqueeze(-1)
    empty_BK1 = counts_BK1 <= 1e-9
    means_BKD = (shares_BNK.mT @ x_BND) / torch.where(empty_BK1, 1.0, counts_BK1)
    return torch.where(empty_BK1, c_BKD, means_BKD)


def inertia(x_BND: Tensor, c_BKD: Tensor) -> Tensor:
    """The mean squared distance (B,) to the nearest centre."""
    return sq_to_centers(x_BND, c_BKD).amin(-1).mean(-1)


def lloyd_layers(x_BND: Tensor, c_BKD: Tensor, n_layers: int) -> list[Tensor]:
    """Lloyd's algorithm on a batch, with which the learned layers are compared."""
    out = []
    for _ in range(n_layers):
        c_BKD = lloyd_step(x_BND, c_BKD)
        out.append(c_BKD)
    return out


def run_layers(network: LearnedLloyd, X, centers, sample_weight=None, device: str | torch.device = "cpu") -> Tensor:
    """The same layers on one data set of any size, in blocks of rows. Returns the centres after the last layer."""
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
    network = checkpoints.load(SHIPPED[10])
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
