"""Batches of random Gaussian mixtures: spherical, as in appendix D.2 of Zimin et al. (2025), or of any covariances.

Shapes: B data sets, N points each, K the largest number of clusters, D dimensions.
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

Range = tuple[float, float]


@dataclass(frozen=True)
class MixturePrior:
    """The distribution of the parameters of a mixture.

    Parameters
    ----------
    dims : (int, int), default=(2, 2)
        The number of dimensions is uniform on this range. Further coordinates are zero.
    clusters : (int, int), default=(2, 20)
        The range of the number of clusters.
    clusters_law : {"uniform", "poisson", "harmonic"}, default="uniform"
        The distribution of the number of clusters k on that range: uniform, a truncated Poisson distribution with
        mean ``clusters_mean``, or with probabilities proportional to 1/k.
    clusters_mean : float, default=5.0
    snr_db : (float, float), default=(3.0, 15.0)
        The signal-to-noise ratio in dB is uniform on this range.
    stretch, unequal : float, default=0.0
        How much the standard deviations of a cluster differ from axis to axis, and how much clusters differ in width:
        the standard deviation of their logarithms is uniform between 0 and these. Axes point in random directions. The
        variance, averaged over clusters and dimensions, is that of the SNR. With 0 and 0, clusters are spherical.
    """

    dims: tuple[int, int] = (2, 2)
    clusters: tuple[int, int] = (2, 20)
    clusters_law: Literal["uniform", "poisson", "harmonic"] = "uniform"
    clusters_mean: float = 5.0
    snr_db: Range = (3.0, 15.0)
    stretch: float = 0.0
    unequal: float = 0.0

    def cluster_probabilities(self) -> Tensor:
        """Probability of every count in the range ``clusters``."""
        low, high = self.clusters
        count = torch.arange(low, high + 1, dtype=torch.float64)
        log_p = {
            "uniform": torch.zeros_like(count),
            "poisson": count * math.log(self.clusters_mean) - torch.lgamma(count + 1),
            "harmonic": -count.log(),
        }[self.clusters_law]
        return log_p.softmax(0)


@dataclass(frozen=True)
class Mixtures:
    """A batch of data sets and their true parameters. Centres beyond the number of clusters have weight zero."""

    points_BND: Tensor
    centers_BKD: Tensor
    weights_BK: Tensor  # of the population
    counts_BK: Tensor  # number of points per cluster
    labels_BN: Tensor
    snr_db_B: Tensor
    var_B: Tensor  # noise variance per dimension, averaged over clusters
    n_clusters_B: Tensor
    dims_B: Tensor

    @property
    def empirical_weights_BK(self) -> Tensor:
        return self.counts_BK / self.points_BND.shape[1]

    @property
    def own_centers_BND(self) -> Tensor:
        """The centre that each point came from."""
        index = self.labels_BN.unsqueeze(-1).expand_as(self.points_BND)
        return self.centers_BKD.gather(1, index)

    def __len__(self) -> int:
        return len(self.points_BND)


def sample_mixtures(prior: MixturePrior, batch: int, n_points: int, generator: torch.Generator) -> Mixtures:
    """Draw ``batch`` mixtures and ``n_points`` points from each, as float32 on the device of the generator."""
    device = generator.device

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, device=device)

    def uniform(*shape: int) -> Tensor:
        return torch.rand(shape, generator=generator, device=device)

    low, high = prior.clusters
    probabilities = prior.cluster_probabilities().to(device)
    n_clusters_B = low + torch.multinomial(probabilities, batch, replacement=True, generator=generator)
    dims_B = torch.randint(prior.dims[0], prior.dims[1] + 1, (batch,), generator=generator, device=device)
    snr_db_B = prior.snr_db[0] + (prior.snr_db[1] - prior.snr_db[0]) * uniform(batch)

    in_use_BK = torch.arange(high, device=device) < n_clusters_B[:, None]
    used_dims_B1D = torch.arange(prior.dims[1], device=device) < dims_B[:, None, None]
    # Dirichlet(1, ..., 1) is a normalised row of exponentials
    weights_BK = -torch.log1p(-uniform(batch, high)) * in_use_BK
    weights_BK = weights_BK / weights_BK.sum(1, keepdim=True)
    centers_BKD = normal(batch, high, prior.dims[1]) * in_use_BK[..., None] * used_dims_B1D
    mean_B1D = (weights_BK[..., None] * centers_BKD).sum(1, keepdim=True)
    signal_B = (weights_BK * (centers_BKD - mean_B1D).square().sum(-1)).sum(1) / dims_B
    var_B = signal_B / 10 ** (snr_db_B / 10)

    labels_BN = torch.searchsorted(weights_BK.cumsum(1), uniform(batch, n_points), right=True)
    labels_BN = torch.minimum(labels_BN, n_clusters_B[:, None] - 1)
    counts_BK = torch.zeros_like(weights_BK).scatter_add_(1, labels_BN, torch.ones(batch, n_points, device=device))
    noise_BND = normal(batch, n_points, prior.dims[1])
    if prior.stretch or prior.unequal:
        roots_BKDD = _roots(prior, weights_BK, used_dims_B1D[:, 0], generator)
        root_BNDD = roots_BKDD[torch.arange(batch, device=device)[:, None], labels_BN]
        noise_BND = (root_BNDD @ noise_BND[..., None])[..., 0]
    noise_BND = noise_BND * var_B.sqrt()[:, None, None] * used_dims_B1D
    index_BND = labels_BN[..., None].expand(-1, -1, prior.dims[1])
    return Mixtures(
        points_BND=centers_BKD.gather(1, index_BND) + noise_BND,
        centers_BKD=centers_BKD,
        weights_BK=weights_BK,
        counts_BK=counts_BK,
        labels_BN=labels_BN,
        snr_db_B=snr_db_B,
        var_B=var_B,
        n_clusters_B=n_clusters_B,
        dims_B=dims_B,
    )


def _roots(prior: MixturePrior, weights_BK: Tensor, used_BD: Tensor, generator: torch.Generator) -> Tensor:
    """(B, K, D, D) square roots of covariances whose diagonals are 1 on average over clusters and dimensions in use."""
    (batch, k), dim, device = weights_BK.shape, used_BD.shape[1], weights_BK.device

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, device=device)

    stretch_B111, unequal_B111 = torch.rand((2, batch, 1, 1, 1), generator=generator, device=device)
    log_std_BK1D = prior.stretch * stretch_B111 * normal(batch, k, 1, dim)
    log_std_BK1D = log_std_BK1D + prior.unequal * unequal_B111 * normal(batch, k, 1, 1)
    var_BKD = (2 * log_std_BK1D[:, :, 0]).exp() * used_BD[:, None]
    mean_B = (weights_BK * var_BKD.sum(-1)).sum(1) / used_BD.sum(1)
    # a rotation of the dimensions in use
    inside_B1DD = (used_BD[:, :, None] & used_BD[:, None])[:, None]
    gaussian_BKDD = torch.where(inside_B1DD, normal(batch, k, dim, dim), torch.eye(dim, device=device))
    return torch.linalg.qr(gaussian_BKDD).Q * log_std_BK1D.exp() / mean_B.sqrt()[:, None, None, None]
