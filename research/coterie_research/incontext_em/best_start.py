"""Starting centres for batches of data sets: the best of several runs, some of them from a spectral start."""

import torch
from torch import Tensor

from coterie.starts.batched import lloyd, plus_plus, sq_to_centers


def best_start(
    x_BND: Tensor,
    n_clusters: int,
    generator: torch.Generator,
    *,
    n_starts: int = 10,
    n_iter: int = 10,
    spectral: int = 0,
) -> Tensor:
    """The centres (B, K, D) of lowest inertia among ``n_starts`` runs of Lloyd's algorithm.

    The first ``spectral`` runs start from a clustering of the projections on the leading K principal directions (He et
    al., 2025, Algorithm 2).
    """
    D = x_BND.shape[-1]
    mean_B1D = x_BND.mean(1, keepdim=True)
    x_BND = x_BND - mean_B1D
    runs_RND = x_BND.repeat(n_starts, 1, 1)
    centers_RKD = plus_plus(runs_RND, n_clusters, generator)
    if spectral and n_clusters < D:
        part = x_BND.repeat(spectral, 1, 1)
        vectors_BDK = torch.linalg.eigh(x_BND.mT @ x_BND)[1][..., D - n_clusters :].repeat(spectral, 1, 1)
        projected = part @ vectors_BDK
        found = lloyd(projected, plus_plus(projected, n_clusters, generator), n_iter)
        centers_RKD = torch.cat([found @ vectors_BDK.mT, centers_RKD[len(found) :]])
    centers_RKD = lloyd(runs_RND, centers_RKD, n_iter)
    return least_inertia(runs_RND, centers_RKD, n_starts) + mean_B1D


def least_inertia(runs_RND: Tensor, centers_RKD: Tensor, n_starts: int) -> Tensor:
    """The centres (B, K, D) of lowest inertia among ``n_starts`` · B runs, which are ordered by start."""
    inertia_SB = sq_to_centers(runs_RND, centers_RKD).amin(-1).sum(-1).view(n_starts, -1)
    batch = inertia_SB.shape[1]
    centers_SBKD = centers_RKD.view(n_starts, batch, *centers_RKD.shape[1:])
    return centers_SBKD[inertia_SB.argmin(0), torch.arange(batch)]
