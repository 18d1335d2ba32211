"""Batches of Gaussian mixtures with a given minimum distance between centres, as in section 4 of He et al. (2025).

The paper does not say how centres are drawn. Here they are k points from N(0, I_d), shifted to mean zero and scaled so
that the two nearest are exactly ``distance`` apart; or, with ``at_least``, points from N(0, distance² I_d) that are
scaled up where two of them would be nearer than ``distance``. The rows are in random order.

Shapes: B data sets, N points each, K clusters, D dimensions; all data sets of a batch share N, K and D.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

Range = tuple[float, float]


@dataclass(frozen=True)
class Separated:
    """A batch of labelled data sets and their true parameters."""

    points_BND: Tensor
    labels_BN: Tensor
    centers_BKD: Tensor
    var_BK: Tensor  # noise variance per dimension of every cluster
    weights_BK: Tensor  # share of the points in every cluster

    def __len__(self) -> int:
        return len(self.points_BND)

    @property
    def n_clusters(self) -> int:
        return self.centers_BKD.shape[1]

    def bayes_log_p_BNK(self) -> Tensor:
        """The log posterior of every cluster, given the true centres, variances and weights."""
        sq_BNK = torch.cdist(self.points_BND, self.centers_BKD, compute_mode="donot_use_mm_for_euclid_dist").square()
        var_B1K = self.var_BK[:, None]
        dims = self.points_BND.shape[-1]
        log_joint_BNK = self.weights_BK[:, None].log() - sq_BNK / (2 * var_B1K) - dims / 2 * var_B1K.log()
        return log_joint_BNK.log_softmax(-1)


def separated_centers(
    batch: int, n_clusters: int, dims: int, distance_B: Tensor, generator: torch.Generator, *, at_least: bool = False
) -> Tensor:
    """Centres (B, K, D), drawn as described in the docstring of this module."""
    raw_BKD = torch.randn(batch, n_clusters, dims, generator=generator)
    raw_BKD = raw_BKD - raw_BKD.mean(1, keepdim=True)
    sq_BKK = (raw_BKD[:, :, None] - raw_BKD[:, None]).square().sum(-1)
    sq_BKK = sq_BKK + torch.diag_embed(torch.full((batch, n_clusters), math.inf))
    least_B = sq_BKK.amin((1, 2)).clamp_min(1e-12).sqrt()
    factor_B = least_B.reciprocal().clamp_min(1) if at_least else least_B.reciprocal()
    return raw_BKD * (distance_B * factor_B)[:, None, None]


def sample_separated(
    counts: list[int] | Tensor,
    dims: int,
    distance_B: Tensor,
    var_B: Tensor,
    generator: torch.Generator,
    *,
    spread: float = 0.0,
    at_least: bool = False,
) -> Separated:
    """Draw ``len(distance_B)`` data sets.

    ``counts`` is the number of points per cluster: one list for all data sets, or a tensor (B, K) with equal row sums.
    ``spread`` is the standard deviation of the logarithms of the clusters' variances; 0 makes them equal.
    With ``at_least`` centres may lie further apart than ``distance``, see the docstring of this module.
    """
    batch = len(distance_B)
    counts_BK = torch.as_tensor(counts)
    if counts_BK.ndim == 1:
        counts_BK = counts_BK.expand(batch, -1)
    n_clusters = counts_BK.shape[1]
    n_points = int(counts_BK[0].sum())
    centers_BKD = separated_centers(batch, n_clusters, dims, distance_B, generator, at_least=at_least)
    var_BK = var_B[:, None].expand(-1, n_clusters)
    if spread:
        var_BK = var_BK * (spread * torch.randn(batch, n_clusters, generator=generator)).exp()
    ends_BK = counts_BK.cumsum(1)
    place_BN = torch.rand(batch, n_points, generator=generator).argsort(1)
    labels_BN = torch.searchsorted(ends_BK.contiguous(), place_BN, right=True)
    std_BN1 = var_BK.gather(1, labels_BN).sqrt()[..., None]
    noise_BND = torch.randn(batch, n_points, dims, generator=generator) * std_BN1
    points_BND = centers_BKD.gather(1, labels_BN[..., None].expand(-1, -1, dims)) + noise_BND
    return Separated(points_BND, labels_BN, centers_BKD, var_BK, counts_BK / n_points)


@dataclass(frozen=True)
class SeparatedPrior:
    """The distribution of the settings.

    The data sets of a batch share the numbers of points, dimensions and clusters and differ in everything else.
    ``separation`` is the minimum distance of two centres divided by the standard deviation, drawn log-uniformly.
    A share ``unequal`` of the data sets has Dirichlet(2, ..., 2) cluster sizes with at least ``smallest`` points each,
    and a share ``spread_share`` of the batches has clusters of different variances.
    """

    dims: tuple[int, int] = (1, 16)
    clusters: tuple[int, int] = (2, 10)
    points: tuple[int, int] = (50, 400)
    separation: Range = (0.8, 8.0)
    unequal: float = 0.5
    smallest: int = 4
    spread_share: float = 0.25
    spread: float = 0.4

    def sample(self, tokens: int, generator: torch.Generator) -> Separated:
        """A batch of about ``tokens`` (point, cluster) pairs."""

        def integer(low: int, high: int) -> int:
            return int(torch.randint(low, high + 1, (), generator=generator))

        def uniform(*shape: int) -> Tensor:
            return torch.rand(shape, generator=generator)

        dims, n_clusters = integer(*self.dims), integer(*self.clusters)
        low, high = (math.log(n) for n in self.points)
        n_points = max(round(math.exp(low + (high - low) * uniform().item())), 2 * self.smallest * n_clusters)
        batch = max(1, round(tokens / (n_points * n_clusters)))
        low, high = (math.log(s) for s in self.separation)
        separation_B = (low + (high - low) * uniform(batch)).exp()
        unequal_B1 = uniform(batch, 1) < self.unequal
        counts_BK = _cluster_sizes(unequal_B1, n_clusters, n_points, self.smallest, generator)
        spread = self.spread if uniform().item() < self.spread_share else 0.0
        return sample_separated(counts_BK, dims, separation_B, torch.ones(batch), generator, spread=spread)


def _cluster_sizes(
    unequal_B1: Tensor, n_clusters: int, n_points: int, smallest: int, generator: torch.Generator
) -> Tensor:
    """Cluster sizes (B, K) with sum ``n_points``: equal, or ``smallest`` plus a Dirichlet(2, ..., 2) share each."""
    uniform_BK2 = torch.rand(len(unequal_B1), n_clusters, 2, generator=generator)
    gamma_BK = -torch.log1p(-uniform_BK2).sum(-1)  # the sum of two exponentials is Gamma(2)
    share_BK = torch.where(unequal_B1, gamma_BK / gamma_BK.sum(1, keepdim=True), 1 / n_clusters)
    ends_BK = (share_BK.cumsum(1) * (n_points - smallest * n_clusters)).round().long()
    ends_BK[:, -1] = n_points - smallest * n_clusters
    return torch.diff(ends_BK, dim=1, prepend=torch.zeros_like(ends_BK[:, :1])) + smallest
