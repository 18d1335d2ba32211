"""Training of learned Lloyd on fresh instances in every step.

The loss is the logarithm of the inertia after T layers divided by that of Lloyd's algorithm.
"""

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from coterie.kmeans.learned import LearnedLloyd, LearnedLloydConfig
from coterie_research.kmeans_transformers.learned import inertia, layers, lloyd_layers
from coterie_research.training.run import TrainingRun


@dataclass(frozen=True)
class Instances:
    """The distribution of the training data.

    "blobs" have the wrong number of clusters half of the time. "uniform" is a cube. "decaying" is a few overlapping
    Gaussians in many dimensions whose spread decays by a power law, like the principal components of images.
    """

    clusters: tuple[int, int] = (3, 20)
    dims: tuple[int, int] = (2, 16)
    points_per_cluster: tuple[int, int] = (20, 40)
    separation: tuple[float, float] = (0.8, 5.0)  # spread of the blobs' centres over that of their points
    decaying_dims: tuple[int, int] = (16, 64)
    kinds: tuple[str, ...] = ("blobs", "uniform", "decaying", "decaying")

    def draw(self, batch: int, generator: torch.Generator, kind: str | None = None) -> tuple[Tensor, Tensor]:
        """Points (B, N, D), and K random rows (B, K, D) of each data set as starting centres."""

        def between(low: int, high: int) -> int:
            return int(torch.randint(low, high + 1, (1,), generator=generator))

        kind = kind or self.kinds[between(0, len(self.kinds) - 1)]
        k, d = between(*self.clusters), between(*(self.decaying_dims if kind == "decaying" else self.dims))
        n = k * between(*self.points_per_cluster)
        if kind == "uniform":
            x_BND = torch.rand(batch, n, d, generator=generator)
            return x_BND, random_rows(x_BND, k, generator)
        true_k = k if between(0, 1) else between(2, 30)
        low, high = (0.2, 1.0) if kind == "decaying" else self.separation
        spread = low * (high / low) ** torch.rand((), generator=generator)
        centers_BKD = spread * torch.randn(batch, true_k, d, generator=generator)
        labels_BN = torch.randint(0, true_k, (batch, n), generator=generator)
        x_BND = centers_BKD.gather(1, labels_BN.unsqueeze(-1).expand(-1, -1, d))
        x_BND = x_BND + torch.randn(batch, n, d, generator=generator)
        if kind == "decaying":
            x_BND = x_BND * torch.arange(1.0, d + 1) ** -(0.2 + 0.8 * torch.rand((), generator=generator))
        return x_BND, random_rows(x_BND, k, generator)


def random_rows(x_BND: Tensor, k: int, generator: torch.Generator) -> Tensor:
    """K different rows of each data set."""
    index_BK = torch.rand(x_BND.shape[:2], generator=generator).topk(k, dim=1).indices
    return x_BND.gather(1, index_BK.unsqueeze(-1).expand(-1, -1, x_BND.shape[-1]))


@dataclass(frozen=True)
class LearnedLloydRun(TrainingRun):
    """The complete configuration of a training run."""

    model: LearnedLloydConfig
    instances: Instances = field(default_factory=Instances)
    batch: int = 32

    kind = "learned-lloyd"
    source = "instances"
    drawn = "blobs, uniform cubes and Gaussians of decaying spread, fresh every step, from random rows"

    def network(self) -> LearnedLloyd:
        return LearnedLloyd(self.model)

    def about(self) -> str:
        return f"Learned Lloyd: {self.model.n_layers} layers with an inverse temperature, a step and a momentum each"

    def loss(self, model: Any, step: int, generator: torch.Generator) -> tuple[Tensor, dict[str, float]]:
        x_BND, start_BKD = self.instances.draw(self.batch, generator)
        with torch.no_grad():
            plain_B = inertia(x_BND, lloyd_layers(x_BND, start_BKD, self.model.n_layers)[-1])
        log_ratio_B = (inertia(x_BND, layers(model, x_BND, start_BKD)[-1]) / plain_B).log()
        return log_ratio_B.mean(), {"worst": log_ratio_B.detach().max().item()}


RUN = LearnedLloydRun
