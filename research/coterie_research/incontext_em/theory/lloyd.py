"""Algorithm 1 of He et al. (2025), plainly: what the constructed Transformers are compared with."""

from typing import NamedTuple

import torch
from torch import Tensor


class Iteration(NamedTuple):
    centers: Tensor  # (K, D)
    labels: Tensor  # (N,)


def distances(x_ND: Tensor, centers_KD: Tensor) -> Tensor:
    """‖x - μ‖ for every point and centre, (N, K)."""
    return (x_ND.unsqueeze(1) - centers_KD).norm(dim=-1)


def assign(x_ND: Tensor, centers_KD: Tensor) -> Tensor:
    """The nearest centre of every point; of several, the first."""
    return distances(x_ND, centers_KD).argmin(dim=1)


def means(x_ND: Tensor, labels_N: Tensor, n_clusters: int) -> Tensor:
    """The mean of every cluster. Algorithm 1 does not say what the mean of no points is; here it is an error."""
    counts = torch.bincount(labels_N, minlength=n_clusters)
    if (counts == 0).any():
        raise ValueError(f"cluster {int(counts.argmin())} has no points, so Algorithm 1 has no next centre for it.")
    sums = torch.zeros(n_clusters, x_ND.shape[1], dtype=x_ND.dtype).index_add_(0, labels_N, x_ND)
    return sums / counts.unsqueeze(1)


def lloyd(x_ND: Tensor, centers_KD: Tensor, tau: int) -> list[Iteration]:
    """The start with its assignment (2), then the state after each of ``tau`` iterations."""
    trajectory = [Iteration(centers_KD, assign(x_ND, centers_KD))]
    for _ in range(tau):
        centers = means(x_ND, trajectory[-1].labels, len(centers_KD))
        trajectory.append(Iteration(centers, assign(x_ND, centers)))
    return trajectory
