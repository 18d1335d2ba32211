"""Where the in-context network starts in training: mixtures fitted by EM from greedy k-means++ starts.

Shapes: B data sets, R runs, N points, K clusters, D dimensions.
"""

import math

import torch
from torch import Tensor

from coterie.incontext.starting import Mixtures, both_kinds, lloyd
from coterie_research.incontext_em.best_start import plus_plus


def fitted_starts(
    x_BND: Tensor,
    n_clusters: int,
    generator: torch.Generator,
    *,
    n_starts: int,
    n_lloyd: int = 5,
    n_em: int = 15,
    spectral: int = 0,
) -> Mixtures:
    """2 · ``n_starts`` · B mixtures: those of all data sets for one start after another, for each of both kinds.

    Each start is greedy k-means++, ``n_lloyd`` steps of Lloyd's algorithm and ``n_em`` steps of EM of both kinds. The
    first ``spectral`` starts are drawn and improved in the projection on the top K principal directions (Algorithm 2
    of He et al., 2025).
    """
    D = x_BND.shape[-1]
    mean_B1D = x_BND.mean(1, keepdim=True)
    x_BND = x_BND - mean_B1D
    runs_RND = x_BND.repeat(n_starts, 1, 1)
    tries = 2 + int(math.log(n_clusters))
    centers_RKD = plus_plus(runs_RND, n_clusters, generator, tries=tries)
    if spectral and n_clusters < D:
        vectors_BDK = torch.linalg.eigh(x_BND.mT @ x_BND)[1][..., D - n_clusters :]
        projected = (x_BND @ vectors_BDK).repeat(spectral, 1, 1)
        found = lloyd(projected, plus_plus(projected, n_clusters, generator, tries=tries), n_lloyd)
        centers_RKD = torch.cat([found @ vectors_BDK.mT.repeat(spectral, 1, 1), centers_RKD[len(found) :]])
    fitted = both_kinds(runs_RND, lloyd(runs_RND, centers_RKD, n_lloyd), n_em)
    return fitted.moved(mean_B1D.repeat(2 * n_starts, 1, 1))
