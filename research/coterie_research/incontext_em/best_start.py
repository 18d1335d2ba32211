"""Starting centres for batches of data sets: k-means++, and the best of several runs, some from a spectral start."""

import torch
from torch import Tensor

from coterie.incontext.starting import lloyd, sq_to_centers


def plus_plus(x_BND: Tensor, n_clusters: int, generator: torch.Generator, *, tries: int = 1) -> Tensor:
    """k-means++: each further centre is a row drawn by its squared distance to the nearest one so far.

    With more than one of ``tries``, the greedy version: the best of that many drawn rows is taken each time.
    """
    B, N, D = x_BND.shape
    row_B = torch.randint(N, (B,), generator=generator)
    sq_BN = torch.full((B, N), torch.inf, dtype=x_BND.dtype)
    centers = []
    for number in range(n_clusters):
        if number:
            mass_BN = torch.where(sq_BN.sum(1, keepdim=True) > 0, sq_BN, 1.0)
            drawn_BT = torch.multinomial(mass_BN, tries, replacement=True, generator=generator)
            row_B = drawn_BT[:, 0]
            if tries > 1:
                tried_BTD = x_BND.gather(1, drawn_BT[..., None].expand(-1, -1, D))
                left_BT = torch.minimum(sq_BN[..., None], sq_to_centers(x_BND, tried_BTD)).sum(1)
                row_B = drawn_BT.gather(1, left_BT.argmin(1, keepdim=True)).squeeze(1)
        center_B1D = x_BND.gather(1, row_B[:, None, None].expand(-1, 1, D))
        centers.append(center_B1D)
        sq_BN = torch.minimum(sq_BN, (x_BND - center_B1D).square().sum(-1))
    return torch.cat(centers, 1)


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
