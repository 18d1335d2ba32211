"""Starting centres for batches of data sets: k-means++ and spectral starts, improved by Lloyd's algorithm or by EM.

Shapes: B data sets, R runs (all data sets for one start after another), N points, K clusters, D dimensions.
"""

import math

import torch
from torch import Tensor

from coterie.incontext.starting import Mixtures, both_kinds, lloyd, sq_to_centers


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


def lloyd_runs(
    x_BND: Tensor, n_clusters: int, generator: torch.Generator, n_starts: int, n_iter: int, spectral: int, tries: int
) -> tuple[Tensor, Tensor]:
    """The data (R, N, D) and the centres (R, K, D) of ``n_starts`` runs of Lloyd's algorithm from k-means++.

    The first ``spectral`` of them start from runs on the projections on the leading K principal directions (He et al.,
    2025, Algorithm 2). ``x_BND`` is centred.
    """
    runs_RND = x_BND.repeat(n_starts, 1, 1)
    centers_RKD = plus_plus(runs_RND, n_clusters, generator, tries=tries)
    if spectral and n_clusters < x_BND.shape[-1]:
        vectors_BDK = torch.linalg.eigh(x_BND.mT @ x_BND)[1][..., x_BND.shape[-1] - n_clusters :]
        projected = (x_BND @ vectors_BDK).repeat(spectral, 1, 1)
        found = lloyd(projected, plus_plus(projected, n_clusters, generator, tries=tries), n_iter)
        centers_RKD = torch.cat([found @ vectors_BDK.mT.repeat(spectral, 1, 1), centers_RKD[len(found) :]])
    return runs_RND, lloyd(runs_RND, centers_RKD, n_iter)


def best_start(
    x_BND: Tensor,
    n_clusters: int,
    generator: torch.Generator,
    *,
    n_starts: int = 10,
    n_iter: int = 10,
    spectral: int = 0,
) -> Tensor:
    """The centres (B, K, D) of lowest inertia among the runs."""
    mean_B1D = x_BND.mean(1, keepdim=True)
    runs_RND, centers_RKD = lloyd_runs(x_BND - mean_B1D, n_clusters, generator, n_starts, n_iter, spectral, tries=1)
    inertia_SB = sq_to_centers(runs_RND, centers_RKD).amin(-1).sum(-1).view(n_starts, -1)
    centers_SBKD = centers_RKD.view(n_starts, len(x_BND), *centers_RKD.shape[1:])
    return centers_SBKD[inertia_SB.argmin(0), torch.arange(len(x_BND))] + mean_B1D


def fitted_starts(
    x_BND: Tensor, n_clusters: int, generator: torch.Generator, *, n_starts: int, spectral: int = 0
) -> Mixtures:
    """2 · R mixtures, R of each of both kinds, where the in-context network starts in training.

    Each start is greedy k-means++, 5 steps of Lloyd's algorithm and 15 steps of EM of both kinds.
    """
    mean_B1D, tries = x_BND.mean(1, keepdim=True), 2 + int(math.log(n_clusters))
    runs_RND, centers_RKD = lloyd_runs(x_BND - mean_B1D, n_clusters, generator, n_starts, 5, spectral, tries)
    return both_kinds(runs_RND, centers_RKD, 15).moved(mean_B1D.repeat(2 * n_starts, 1, 1))
