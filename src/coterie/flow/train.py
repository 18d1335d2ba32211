"""Training of the measure flow: fresh mixtures every step, SNR-scaled loss, a curriculum of stages.

A stage fixes what a step costs: number of points, number of layers, tokens per step. The flow is a differential
equation with a shared vector field, so early stages take few points and few, longer steps; later ones refine both.
"""

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from coterie import checkpoints
from coterie.data.mixtures import MixturePrior, sample_mixtures
from coterie.flow.model import FlowConfig, MeasureFlow
from coterie.metrics import own_center_error, squared_w2
from coterie.training import STATE_FILE, Progress, TrainingConfig, load_average, train


@dataclass(frozen=True)
class Stage:
    """Until step ``until``: points per data set log-uniform on ``n_points``, ``tokens`` points in a step."""

    until: int
    n_points: tuple[int, int]
    n_layers: int
    tokens: int
    loss: Literal["own", "w2"] = "w2"  # distance to each point's own centre, or exact W2


@dataclass(frozen=True)
class FlowRun:
    """Everything that defines a run."""

    model: FlowConfig
    training: TrainingConfig
    stages: tuple[Stage, ...]
    prior: MixturePrior = field(default_factory=MixturePrior)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "FlowRun":
        def build(kind: Any, entries: dict[str, Any]) -> Any:
            return kind(**{k: tuple(v) if isinstance(v, list) else v for k, v in entries.items()})

        unknown = set(values) - {"model", "training", "stages", "prior"}
        if unknown:
            raise ValueError(f"a flow config has model, training, stages and prior; got also {sorted(unknown)}")
        return cls(
            model=build(FlowConfig, values.get("model", {})),
            training=build(TrainingConfig, values["training"]),
            stages=tuple(build(Stage, stage) for stage in values["stages"]),
            prior=build(MixturePrior, values.get("prior", {})),
        )

    @classmethod
    def from_json(cls, path: Path) -> "FlowRun":
        return cls.from_dict(json.loads(Path(path).read_text()))

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


class FlowTask:
    """The measure flow as a :class:`coterie.training.Task`."""

    def __init__(self, run: FlowRun):
        self.run = run
        torch.manual_seed(run.training.seed)
        self.model = MeasureFlow(run.model)

    def matrices(self) -> Iterable[nn.Parameter]:
        return [p for p in self.model.blocks.parameters() if p.ndim == 2]

    def loss(self, model: nn.Module, step: int, generator: torch.Generator) -> tuple[Tensor, dict[str, float]]:
        stage = next((s for s in self.run.stages if step < s.until), self.run.stages[-1])
        low, high = (math.log(n) for n in stage.n_points)
        u = torch.rand((), generator=generator, device=generator.device).item()
        n_points = round(math.exp(low + (high - low) * u))
        data = sample_mixtures(self.run.prior, max(1, stage.tokens // n_points), n_points, generator)
        estimate_BND = model(data.points_BND, data.snr_db_B, dims_B=data.dims_B, n_layers=stage.n_layers)
        if stage.loss == "own":
            error_B = own_center_error(estimate_BND, data.own_centers_BND)
        else:
            error_B = squared_w2(estimate_BND, data.centers_BKD, data.empirical_weights_BK)
        scaled_B = 10 ** (data.snr_db_B / 10) * error_B / data.dims_B * 2
        return scaled_B.mean(), {"log_error": error_B.detach().clamp_min(1e-12).log().mean().item()}


def main(
    config: Path,
    directory: Path,
    *,
    resume: bool = False,
    start_from: Path | None = None,
    on_progress: Callable[[Progress], Any] | None = None,
) -> MeasureFlow:
    """Train the run that the JSON file ``config`` describes; logs and state go to ``directory``."""
    run = FlowRun.from_json(config)
    task = FlowTask(run)
    average = train(task, run.training, directory, resume=resume, start_from=start_from, on_progress=on_progress)
    average.eval()
    return average  # type: ignore[return-value]


def ship(config: Path, directory: Path, name: str, scores: dict[str, Any], shelf: Path = checkpoints.SHELF) -> Path:
    """Put the averaged weights of the run in ``directory`` on the shelf of shipped networks, with their card."""
    run = FlowRun.from_json(config)
    network = MeasureFlow(run.model)
    state = torch.load(Path(directory) / STATE_FILE, weights_only=True)
    steps = load_average(Path(directory) / STATE_FILE, network)
    about = {
        "name": name,
        "kind": "flow",
        "about": f"Measure flow for {run.prior.dims[0]} to {run.prior.dims[1]} dimensions, "
        f"{run.model.n_layers} layers, {run.model.regime} flow speed",
        "config": run.model.to_dict(),
        "data": {"synthetic": "spherical Gaussian mixtures, fresh every step", **asdict(run.prior)},
        "training": {
            "steps": steps,
            "cpu_seconds": round(state["cpu_seconds"]),
            "weights": sum(p.numel() for p in network.parameters()),
            "settings": asdict(run.training),
            "stages": [asdict(stage) for stage in run.stages],
        },
        "scores": scores,
        "licence": "BSD-3-Clause",
    }
    return checkpoints.save(network, about, shelf)
