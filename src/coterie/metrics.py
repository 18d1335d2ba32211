"""Distances between measures: the exact squared Wasserstein-2 distance and its gradient.

The weights are constants and the optimal plan is locally constant almost everywhere, so the gradient of the distance in
the positions is that of the quadratic form sum_ij plan_ij ||x_i - y_j||^2 at the optimal plan.
"""

import numpy as np
import torch
from torch import Tensor


def transport_plan(cost_NK: np.ndarray, weights_N: np.ndarray, weights_K: np.ndarray) -> np.ndarray:
    """The exact optimal plan between two discrete measures (POT's network simplex)."""
    import ot

    weights_N = weights_N / weights_N.sum()
    weights_K = weights_K / weights_K.sum()
    return ot.emd(weights_N, weights_K, cost_NK, numItermax=10_000_000, check_marginals=False)


def squared_w2(x_BND: Tensor, y_BKD: Tensor, y_weights_BK: Tensor, x_weights_BN: Tensor | None = None) -> Tensor:
    """Exact squared W2 of each pair of measures in the batch, differentiable in both sets of positions.

    ``x_weights_BN`` is uniform if left out; atoms of weight zero are padding.
    """
    batch, n_points, _ = x_BND.shape
    cost_BNK = torch.cdist(
        x_BND.detach().double(), y_BKD.detach().double(), compute_mode="donot_use_mm_for_euclid_dist"
    ).square()
    costs = cost_BNK.cpu().numpy()
    y_weights = y_weights_BK.detach().double().cpu().numpy()
    if x_weights_BN is None:
        x_weights = np.full((batch, n_points), 1 / n_points)
    else:
        x_weights = x_weights_BN.detach().double().cpu().numpy()

    plan_BNK = np.zeros(costs.shape)
    for b in range(batch):
        rows, columns = x_weights[b] > 0, y_weights[b] > 0
        pair = np.ix_(rows, columns)
        cost = np.ascontiguousarray(costs[b][pair])
        plan_BNK[b][pair] = transport_plan(cost, x_weights[b][rows], y_weights[b][columns])
    plan = torch.as_tensor(plan_BNK, dtype=x_BND.dtype, device=x_BND.device)
    sq_distance_BNK = (x_BND[:, :, None] - y_BKD[:, None]).square().sum(-1)
    return (plan * sq_distance_BNK).sum((1, 2))


def own_center_error(x_BND: Tensor, own_centers_BND: Tensor) -> Tensor:
    """Mean squared distance of each point's estimate to the centre that the point came from: an upper bound of W2."""
    return (x_BND - own_centers_BND).square().sum(-1).mean(1)
