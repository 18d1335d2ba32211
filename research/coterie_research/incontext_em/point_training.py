"""Training of the network of He et al. (2025): one setting, and a learning rate that decays exponentially."""

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from coterie.incontext.starting import sq_to_centers
from coterie_research.incontext_em.best_start import best_start
from coterie_research.incontext_em.point_transformer import PointConfig, PointTransformer
from coterie_research.metrics import permutation_free_cross_entropy
from coterie_research.training.incontext.prior import Separated
from coterie_research.training.loop import Task, TrainingConfig, train


@dataclass(frozen=True)
class ExponentialDecay(TrainingConfig):
    """Adam as in He et al. (2025): no warm-up, no weight decay, the rate times ``factor`` per step, no average."""

    learning_rate: float = 5e-4
    weight_decay: float = 0.0
    betas: tuple[float, float] = (0.9, 0.999)
    warmup_steps: int = 0
    average_decay: float = 0.0
    factor: float = 0.995

    def rate(self, step: int) -> float:
        return self.factor**step


Source = Callable[[int, torch.Generator], Separated]
Starts = Callable[[PointConfig, Tensor, torch.Generator], tuple[Tensor, Tensor] | None]


class PointTask:
    """The network of He et al. (2025) on data from ``source``, fresh in every step or ``instances`` fixed ones."""

    def __init__(
        self,
        config: PointConfig,
        source: Source,
        batch: int,
        seed: int,
        instances: int | None = None,
        start: Starts | None = None,
    ):
        self.config, self.source, self.batch, self.start = config, source, batch, start or start_of
        torch.manual_seed(seed)
        self.model = PointTransformer(config)
        self.pool = None
        if instances is not None:
            self.pool = source(instances, torch.Generator().manual_seed(seed + 1_000_003))

    def loss(self, model: nn.Module, step: int, generator: torch.Generator) -> tuple[Tensor, dict[str, float]]:
        points_BND, labels_BN = self._draw(generator)
        start = self.start(self.config, points_BND, generator)
        loss_B, _ = permutation_free_cross_entropy(model(points_BND, start), labels_BN)
        return loss_B.mean(), {}

    def _draw(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        if self.pool is None:
            data = self.source(self.batch, generator)
            return data.points_BND, data.labels_BN
        rows = torch.randperm(len(self.pool), generator=generator)[: self.batch]
        return self.pool.points_BND[rows], self.pool.labels_BN[rows]


def starting_labels(
    points_BND: Tensor, n_clusters: int, generator: torch.Generator, n_iter: int = 10
) -> tuple[Tensor, Tensor]:
    """Algorithm 2: centres from one spectral start, and the nearest of them for every point.

    The algorithm as printed is k-means++ in the projection, ``n_iter`` = 0. With more, Lloyd's algorithm improves the
    centres there and then in the space of the points.
    """
    centers_BKD = best_start(points_BND, n_clusters, generator, n_starts=1, n_iter=n_iter, spectral=1)
    return centers_BKD, sq_to_centers(points_BND, centers_BKD).argmin(-1)


def start_of(config: PointConfig, x_BND: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor] | None:
    """The start that the network is given: None without context rows."""
    if not config.context:
        return None
    return starting_labels(x_BND, config.n_clusters, generator, config.start_iterations)


def train_points(
    config: PointConfig,
    source: Source,
    training: TrainingConfig,
    *,
    batch: int = 16,
    instances: int | None = None,
    start: Starts | None = None,
) -> PointTransformer:
    """Train one of the paper's networks; nothing is kept but the weights."""
    task = PointTask(config, source, batch, training.seed, instances, start)
    with tempfile.TemporaryDirectory() as folder:
        began = time.process_time()
        network: PointTransformer = train(Task(task.model, task.loss), training, Path(folder) / "run")  # type: ignore[assignment]
    network.training_seconds = time.process_time() - began
    return network.eval()
