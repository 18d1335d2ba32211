"""Learned Lloyd and Lloyd's algorithm on batches of data sets, for training and comparisons.

:func:`coterie.kmeans.learned.run_layers` computes the same layers on one data set of any size.

Shapes: B data sets, N points, K centres, D dimensions.
"""

import torch
from torch import Tensor

from coterie.incontext.starting import lloyd_step, sq_to_centers
from coterie.kmeans.learned import LearnedLloyd

SHIPPED = {5: "learned-lloyd-5", 10: "learned-lloyd-10"}


def layers(network: LearnedLloyd, x_BND: Tensor, c_BKD: Tensor) -> list[Tensor]:
    """The centres after each layer."""
    before_BKD, out = c_BKD, []
    for layer in range(network.config.n_layers):
        mean_BKD = soft_means(x_BND, c_BKD, network.log_gamma[layer].exp())
        move_BKD = network.step[layer] * (mean_BKD - c_BKD) + network.momentum[layer] * (c_BKD - before_BKD)
        before_BKD, c_BKD = c_BKD, c_BKD + move_BKD
        out.append(c_BKD)
    return out


def soft_means(x_BND: Tensor, c_BKD: Tensor, gamma: Tensor) -> Tensor:
    """The mean of the points per centre after a soft assignment. A centre without points does not move."""
    sq_BNK = sq_to_centers(x_BND, c_BKD)
    if c_BKD.shape[1] == 1:
        shares_BNK = torch.ones_like(sq_BNK)
    else:
        near_BN2 = sq_BNK.topk(2, dim=-1, largest=False).values
        lead_BN = near_BN2[..., 1] - near_BN2[..., 0]
        scale_B11 = lead_BN.mean(-1).clamp(min=torch.finfo(sq_BNK.dtype).tiny)[:, None, None]
        shares_BNK = (-gamma * sq_BNK / scale_B11).softmax(-1)
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
