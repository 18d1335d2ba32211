"""What the network says about a data set: a token for every point, and the places where tokens gather.

Shapes: B data sets, N points, D dimensions, M different tokens, K places.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from coterie.mixtures.flow import MeasureFlow

MERGE_RADIUS = 1.0  # in noise standard deviations


def noise_variance(points_BND: Tensor, snr_db_B: Tensor) -> Tensor:
    """The noise variance per dimension that an SNR implies: the total variance per dimension over 1 + SNR."""
    return points_BND.var(1, correction=0).mean(-1) / (1 + 10 ** (snr_db_B / 10))


@torch.no_grad()
def flow_tokens(
    network: MeasureFlow, points_BND: Tensor, snr_db_B: Tensor, weights_BN: Tensor | None = None, **settings: Any
) -> Tensor:
    """Tokens (B, N, D) of data whose dimension D may be smaller than that of the network.

    ``weights_BN`` says how many points each stands for; ``settings`` are those of :meth:`MeasureFlow.forward`.
    """
    dim, place = points_BND.shape[-1], network.encoder_DE
    dims_B = torch.full((len(points_BND),), dim, device=place.device)
    padded_BND = torch.nn.functional.pad(points_BND, (0, network.config.dim - dim)).to(place)
    weights_BN = None if weights_BN is None else weights_BN.to(place)
    tokens_BND = network(padded_BND, snr_db_B.to(place), dims_B=dims_B, weights_BN=weights_BN, **settings)
    return tokens_BND[..., :dim].to(points_BND)


def merge_tokens(tokens_ND: Tensor, radius: float) -> tuple[Tensor, Tensor]:
    """Centres (K, D) and weights (K,) of groups of tokens around the places where they are densest.

    The token with the most other tokens within ``radius`` becomes a leader, and these tokens are removed; this is
    repeated until no token is left. Every token is then assigned to its nearest leader. The means of these groups and
    their shares of the tokens are the result.
    """
    _, first_M, mass = np.unique(tokens_ND.numpy(), axis=0, return_index=True, return_counts=True)
    order = np.argsort(first_M)  # different tokens in the order of the rows
    tokens_MD, mass = tokens_ND[first_M[order]], mass[order]
    # Not by matrix products, whose rounding errors can exceed a small radius: a leader must be its own nearest.
    distance_MM = torch.cdist(tokens_MD, tokens_MD, compute_mode="donot_use_mm_for_euclid_dist")
    near_MM = (distance_MM <= radius).numpy()
    left_M = np.ones(len(mass), dtype=bool)
    count_M = near_MM @ mass
    leaders = []
    while left_M.any():
        leader = int(np.argmax(np.where(left_M, count_M, -1)))
        taken_M = near_MM[leader] & left_M
        leaders.append(leader)
        left_M &= ~taken_M
        count_M = count_M - near_MM[:, taken_M] @ mass[taken_M]
    label_M = distance_MM[:, leaders].argmin(1)
    member_MK = torch.nn.functional.one_hot(label_M, len(leaders)) * torch.as_tensor(mass)[:, None].to(tokens_ND.dtype)
    weights_K = member_MK.sum(0)
    return member_MK.T @ tokens_MD / weights_K[:, None], weights_K / len(tokens_ND)
