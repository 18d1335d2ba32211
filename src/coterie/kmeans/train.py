"""Training of learned Lloyd: fresh instances every step, the logarithm of the inertia after T layers over Lloyd's."""

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from coterie import checkpoints
from coterie.kmeans.learned import SHIPPED, LearnedLloyd, LearnedLloydConfig, inertia, lloyd_layers
from coterie.training import STATE_FILE, Progress, TrainingConfig, load_average, train


@dataclass(frozen=True)
class Instances:
    """Which problems are drawn.

    "blobs" have the wrong number of clusters half of the time; "uniform" is a cube; "decaying" is a few overlapping
    Gaussians in many dimensions whose spread falls off by a power, as the principal components of images do.
    """

    clusters: tuple[int, int] = (3, 20)
    dims: tuple[int, int] = (2, 16)
    points_per_cluster: tuple[int, int] = (20, 40)
    separation: tuple[float, float] = (0.8, 5.0)  # spread of the blobs' centres over that of their points
    decaying_dims: tuple[int, int] = (16, 64)
    kinds: tuple[str, ...] = ("blobs", "uniform", "decaying", "decaying")

    def draw(self, batch: int, generator: torch.Generator, kind: str | None = None) -> tuple[Tensor, Tensor]:
        """Points (B, N, D) and K random rows of each data set to start from, (B, K, D)."""

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
class LearnedLloydRun:
    """Everything that defines a run."""

    model: LearnedLloydConfig
    training: TrainingConfig
    instances: Instances = field(default_factory=Instances)
    batch: int = 32

    @classmethod
    def from_json(cls, path: Path) -> "LearnedLloydRun":
        values = json.loads(Path(path).read_text())
        unknown = set(values) - {"model", "training", "instances", "batch"}
        if unknown:
            raise ValueError(f"a run has model, training, instances and batch; got also {sorted(unknown)}")
        return cls(
            LearnedLloydConfig(**values.get("model", {})),
            TrainingConfig(**values["training"]),
            Instances(**values.get("instances", {})),
            values.get("batch", 32),
        )


class LearnedLloydTask:
    """Learned Lloyd as a :class:`coterie.training.Task`."""

    def __init__(self, run: LearnedLloydRun):
        self.run = run
        self.model = LearnedLloyd(run.model)

    def matrices(self) -> Iterable[nn.Parameter]:
        return []

    def loss(self, model: nn.Module, step: int, generator: torch.Generator) -> tuple[Tensor, dict[str, float]]:
        x_BND, start_BKD = self.run.instances.draw(self.run.batch, generator)
        with torch.no_grad():
            plain_B = inertia(x_BND, lloyd_layers(x_BND, start_BKD, self.run.model.n_layers)[-1])
        log_ratio_B = (inertia(x_BND, model(x_BND, start_BKD)[-1]) / plain_B).log()
        return log_ratio_B.mean(), {"worst": log_ratio_B.detach().max().item()}


def main(
    config: Path, directory: Path, *, resume: bool = False, on_progress: Callable[[Progress], Any] | None = None
) -> LearnedLloyd:
    """Train the run that the JSON file ``config`` describes; logs and state go to ``directory``."""
    run = LearnedLloydRun.from_json(config)
    average = train(LearnedLloydTask(run), run.training, directory, resume=resume, on_progress=on_progress)
    return average  # type: ignore[return-value]


def ship(config: Path, directory: Path, scores: dict[str, Any], shelf: Path = checkpoints.SHELF) -> Path:
    """Put the averaged weights of a run on the shelf of shipped networks, with their card."""
    run = LearnedLloydRun.from_json(config)
    network = LearnedLloyd(run.model)
    state_path = Path(directory) / STATE_FILE
    steps = load_average(state_path, network)
    about = {
        "name": SHIPPED[run.model.n_layers],
        "kind": "learned-lloyd",
        "about": f"Learned Lloyd: {run.model.n_layers} layers with an inverse temperature, a step and a momentum each",
        "config": run.model.to_dict(),
        "data": {
            "synthetic": "blobs, uniform cubes and Gaussians of decaying spread, fresh every step, from random rows"
        }
        | asdict(run.instances),
        "training": {
            "steps": steps,
            "cpu_seconds": round(torch.load(state_path, weights_only=True)["cpu_seconds"]),
            "weights": sum(p.numel() for p in network.parameters()),
            "settings": asdict(run.training),
            "batch": run.batch,
        },
        "scores": scores,
        "licence": "BSD-3-Clause",
    }
    return checkpoints.save(network, about, shelf)
