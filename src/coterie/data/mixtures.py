"""Random spherical Gaussian mixtures, a batch at a time (appendix D.2 of the measure-flow document).

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
    """What is drawn at random before the points are.

    ``snr_db`` is uniform on its range, or log-normal truncated to it (``snr_law="lognormal"``, the median in dB and the
    standard deviation of the logarithm in ``snr_median`` and ``snr_log_std``). The number of clusters is uniform on its
    range, Poisson with ``clusters_mean`` truncated to it, or ``"harmonic"``: probability proportional to 1/k.
    The number of dimensions is uniform on ``dims``; coordinates beyond it are zero.
    """

    dims: tuple[int, int] = (2, 2)
    clusters: tuple[int, int] = (2, 20)
    clusters_law: Literal["uniform", "poisson", "harmonic"] = "uniform"
    clusters_mean: float = 5.0
    snr_db: Range = (3.0, 15.0)
    snr_law: Literal["uniform", "lognormal"] = "uniform"
    snr_median: float = 8.0
    snr_log_std: float = 0.5

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
    """A batch of data sets and the truth about them. Centres beyond a data set's count have weight zero."""

    points_BND: Tensor
    centers_BKD: Tensor
    weights_BK: Tensor  # of the population
    counts_BK: Tensor  # points that each cluster got
    labels_BN: Tensor
    snr_db_B: Tensor
    var_B: Tensor  # noise variance per dimension
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
    """Draw ``batch`` mixtures from ``prior`` and ``n_points`` points from each; float32, on the generator's device."""
    device = generator.device

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, device=device)

    def uniform(*shape: int) -> Tensor:
        return torch.rand(shape, generator=generator, device=device)

    low, high = prior.clusters
    probabilities = prior.cluster_probabilities().to(device)
    n_clusters_B = low + torch.multinomial(probabilities, batch, replacement=True, generator=generator)
    dims_B = torch.randint(prior.dims[0], prior.dims[1] + 1, (batch,), generator=generator, device=device)
    snr_db_B = _draw_snr(prior, uniform(batch))

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
    noise_BND = normal(batch, n_points, prior.dims[1]) * var_B.sqrt()[:, None, None] * used_dims_B1D
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


def _draw_snr(prior: MixturePrior, uniform_B: Tensor) -> Tensor:
    low, high = prior.snr_db
    if prior.snr_law == "uniform":
        return low + (high - low) * uniform_B

    def cdf(value: float) -> float:
        z = (math.log(value) - math.log(prior.snr_median)) / prior.snr_log_std
        return 0.5 * (1 + math.erf(z / math.sqrt(2)))

    u_B = cdf(low) + (cdf(high) - cdf(low)) * uniform_B
    z_B = math.sqrt(2) * torch.erfinv(2 * u_B - 1)
    return (math.log(prior.snr_median) + prior.snr_log_std * z_B).exp().clamp(low, high)
