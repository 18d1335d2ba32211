"""Losses and scores: the exact squared Wasserstein-2 distance, and scores that are invariant to permuted labels.

The weights of the Wasserstein distance are constants, and the optimal plan is locally constant almost everywhere. The
gradient with respect to the positions is therefore that of sum_ij plan_ij ||x_i - y_j||^2 at the optimal plan.
"""

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor


def transport_plans(x_BND: Tensor, y_BKD: Tensor, y_weights_BK: Tensor, x_weights_BN: Tensor | None = None) -> Tensor:
    """The exact optimal plan (B, N, K) of each pair of measures for the squared distance, without gradient.

    It is found by the network simplex of POT. ``x_weights_BN`` is uniform by default. Atoms of weight zero are padding.
    """
    import ot

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
        pair, own, other = np.ix_(rows, columns), x_weights[b][rows], y_weights[b][columns]
        cost, exact = np.ascontiguousarray(costs[b][pair]), {"numItermax": 10_000_000, "check_marginals": False}
        plan_BNK[b][pair] = ot.emd(own / own.sum(), other / other.sum(), cost, **exact)
    return torch.as_tensor(plan_BNK, dtype=x_BND.dtype, device=x_BND.device)


def squared_w2(x_BND: Tensor, y_BKD: Tensor, y_weights_BK: Tensor, x_weights_BN: Tensor | None = None) -> Tensor:
    """The exact squared W2 of each pair of measures in the batch, differentiable in both sets of positions."""
    plan_BNK = transport_plans(x_BND, y_BKD, y_weights_BK, x_weights_BN)
    sq_distance_BNK = (x_BND[:, :, None] - y_BKD[:, None]).square().sum(-1)
    return (plan_BNK * sq_distance_BNK).sum((1, 2))


def own_center_error(x_BND: Tensor, own_centers_BND: Tensor) -> Tensor:
    """Mean squared distance of each estimate to the centre that its point came from: an upper bound of squared W2."""
    return (x_BND - own_centers_BND).square().sum(-1).mean(1)


def best_renaming(cost_BKK: Tensor) -> Tensor:
    """The assignment of classes (rows) to outputs (columns) with the lowest total cost, shape (B, K)."""
    costs = cost_BKK.detach().double().cpu().numpy()
    return torch.as_tensor(np.stack([linear_sum_assignment(cost)[1] for cost in costs]), device=cost_BKK.device)


def permutation_free_cross_entropy(log_p_BNK: Tensor, labels_BN: Tensor) -> tuple[Tensor, Tensor]:
    """Mean cross-entropy per point, minimised over all K! permutations of the labels; and the permutation, (B, K).

    The cross-entropy under a permutation r is a sum over classes, sum_j cost[j, r(j)], where cost[j, c] is the total of
    -log p_c over the points of class j. A linear assignment on this K x K matrix therefore gives the exact minimum,
    for which He et al. (2025) try every permutation.
    """
    own_BNK = torch.nn.functional.one_hot(labels_BN, log_p_BNK.shape[-1]).to(log_p_BNK)
    cost_BKK = -own_BNK.mT @ log_p_BNK
    renaming_BK = best_renaming(cost_BKK)
    loss_B = cost_BKK.gather(2, renaming_BK[..., None]).sum((1, 2)) / labels_BN.shape[1]
    return loss_B, renaming_BK


def clustering_scores(found_BN: np.ndarray, labels_BN: np.ndarray) -> dict[str, np.ndarray]:
    """ARI, NMI and the error rate under the best assignment of clusters to classes, one value per data set."""
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
    from sklearn.metrics.cluster import contingency_matrix

    scores: dict[str, list[float]] = {"ari": [], "nmi": [], "error": []}
    for found, labels in zip(found_BN, labels_BN):
        table = contingency_matrix(labels, found)
        rows, columns = linear_sum_assignment(-table)
        scores["ari"].append(adjusted_rand_score(labels, found))
        scores["nmi"].append(normalized_mutual_info_score(labels, found))
        scores["error"].append(1 - table[rows, columns].sum() / len(labels))
    return {name: np.array(values) for name, values in scores.items()}


def normalised_accuracy(labels: np.ndarray, found: np.ndarray) -> float:
    """Normalised clustering accuracy (Gagolewski, 2022): the mean share of each class that is in its matched cluster.

    It is rescaled so that 0 is the worst case and 1 is a perfect clustering.
    """
    from sklearn.metrics.cluster import contingency_matrix

    table = contingency_matrix(labels, found)
    recall = table / table.sum(axis=1, keepdims=True)
    rows, columns = linear_sum_assignment(-recall)
    classes, mean = len(table), recall[rows, columns].sum() / len(table)
    return float(mean) if classes == 1 else float((mean - 1 / classes) / (1 - 1 / classes))
