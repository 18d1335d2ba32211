"""Where the in-context network starts: mixtures fitted by EM from several centres, in batches of data sets.

Every start is fitted twice, with clusters of equal size and with estimated sizes, and judged by its evidence.

Shapes: B data sets, S starts, N points, K clusters, D dimensions.
"""

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

LEAST_VAR = 1e-6  # of the data's variance: below it float32 distances are rounding
EVIDENCE_GAP = 8.0  # a mixture exp(8) times less likely than the best one is ignored


@dataclass(frozen=True)
class Mixtures:
    """A spherical Gaussian mixture with one variance for every data set."""

    centers_BKD: Tensor
    shares_BK: Tensor
    var_B: Tensor
    log_likelihood_B: Tensor  # of all points
    evidence_B: Tensor  # the log-likelihood, less (K - 1)/2 log N if shares were estimated (Schwarz, 1978)
    last_rise_B: Tensor  # of the mean log-likelihood in the last step of EM

    def pick(self, index_B: Tensor) -> "Mixtures":
        return Mixtures(*(getattr(self, name)[index_B] for name in self.__dataclass_fields__))

    def moved(self, by: Tensor) -> "Mixtures":
        return replace(self, centers_BKD=self.centers_BKD + by)


def sq_to_centers(x_BND: Tensor, centers_BKD: Tensor) -> Tensor:
    """Squared distances (B, N, K), computed relative to the mean of the centres to reduce cancellation."""
    origin_B1D = centers_BKD.mean(1, keepdim=True)
    x_BND, centers_BKD = x_BND - origin_B1D, centers_BKD - origin_B1D
    cross_BNK = x_BND @ centers_BKD.mT
    return (x_BND.square().sum(-1)[..., None] - 2 * cross_BNK + centers_BKD.square().sum(-1)[:, None]).clamp_min(0)


def lloyd_step(x_BND: Tensor, centers_BKD: Tensor) -> Tensor:
    """The mean of the rows nearest to each centre. The centre of an empty cluster does not move."""
    nearest_BN = sq_to_centers(x_BND, centers_BKD).argmin(-1)
    own_BNK = torch.nn.functional.one_hot(nearest_BN, centers_BKD.shape[1]).to(x_BND)
    count_BK1 = own_BNK.sum(1)[..., None]
    return torch.where(count_BK1 > 0, own_BNK.mT @ x_BND / count_BK1.clamp_min(1), centers_BKD)


def lloyd(x_BND: Tensor, centers_BKD: Tensor, n_iter: int) -> Tensor:
    """The centres after ``n_iter`` iterations of Lloyd's algorithm."""
    for _ in range(n_iter):
        centers_BKD = lloyd_step(x_BND, centers_BKD)
    return centers_BKD


def em(x_BND: Tensor, centers_BKD: Tensor, n_iter: int, *, mixing_weights: bool = True, prior: float = 1.0) -> Mixtures:
    """``n_iter`` steps of EM from hard assignments to the given centres.

    The M-step adds ``prior`` points to every cluster's share, so that no share becomes zero; without ``mixing_weights``
    all shares are equal.
    """
    _, N, D = x_BND.shape
    K = centers_BKD.shape[1]
    least_B = x_BND.var(1, correction=0).mean(-1) * LEAST_VAR + torch.finfo(x_BND.dtype).tiny
    sq_BNK = sq_to_centers(x_BND, centers_BKD)
    p_BNK = torch.nn.functional.one_hot(sq_BNK.argmin(-1), K).to(x_BND)
    before_B = rise_B = x_BND.new_full((len(x_BND),), -math.inf)
    for step in range(n_iter + 1):
        count_BK = p_BNK.sum(1)
        if step:
            centers_BKD = p_BNK.mT @ x_BND / count_BK[..., None].clamp_min(1e-9)
            sq_BNK = sq_to_centers(x_BND, centers_BKD)
        var_B = ((p_BNK * sq_BNK).sum((1, 2)) / (N * D)).maximum(least_B)
        shares_BK = (count_BK + prior) / (N + K * prior) if mixing_weights else torch.full_like(count_BK, 1 / K)
        joint_BNK = shares_BK.log()[:, None] - sq_BNK / (2 * var_B[:, None, None])
        log_sum_BN = joint_BNK.logsumexp(-1)
        after_B = log_sum_BN.sum(1) - N * D / 2 * (2 * math.pi * var_B).log()
        before_B, rise_B = after_B, (after_B - before_B) / N
        p_BNK = (joint_BNK - log_sum_BN[..., None]).exp()
    penalty = (K - 1) / 2 * math.log(N) if mixing_weights else 0.0
    return Mixtures(centers_BKD, shares_BK, var_B, before_B, before_B - penalty, rise_B)


def both_kinds(x_BND: Tensor, centers_BKD: Tensor, n_iter: int) -> Mixtures:
    """EM with equal shares and with estimated ones, one after the other: 2 B mixtures."""
    kinds = [em(x_BND, centers_BKD, n_iter, mixing_weights=mixing_weights) for mixing_weights in (False, True)]
    names = Mixtures.__dataclass_fields__
    return Mixtures(*(torch.cat([getattr(kind, name) for kind in kinds]) for name in names))


def distinct_modes(evidence_S: Tensor, most: int) -> Tensor:
    """Indices of at most ``most`` mixtures of one data set, best first, that are different optima.

    Mixtures whose evidence differs by less than 0.01 count as one optimum.
    """
    kept: list[int] = []
    for index in torch.argsort(evidence_S, descending=True, stable=True).tolist():
        value = evidence_S[index]
        if kept and (len(kept) == most or evidence_S[kept[0]] - value > EVIDENCE_GAP):
            break
        if not kept or evidence_S[kept[-1]] - value >= 0.01:
            kept.append(index)
    return torch.tensor(kept)
