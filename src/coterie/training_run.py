"""A training run as a JSON file: what is trained, on what data, how; and the way of its weights to the shelf.

A model's package derives a dataclass from :class:`TrainingRun`, which names its parts. Reading the file, training,
resuming and shipping are the same for all.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar, get_args, get_type_hints

import torch
from torch import nn

from coterie import checkpoints
from coterie.training import STATE_FILE, Progress, Task, TrainingConfig, load_average, train

AnyTrainingRun = TypeVar("AnyTrainingRun", bound="TrainingRun")


@dataclass(frozen=True)
class TrainingRun:
    """Everything that defines a run. A room adds the parts that its networks need beside these two."""

    model: Any
    training: TrainingConfig

    kind: ClassVar[str]  # of network, as on its card
    source: ClassVar[str] = "prior"  # the part that says which data are drawn
    drawn: ClassVar[str]  # the same in words

    def task(self) -> Task:
        """The network with its first weights, and its loss."""
        raise NotImplementedError

    def about(self) -> str:
        """The network in a line, for its card."""
        raise NotImplementedError

    @classmethod
    def from_dict(cls: type[AnyTrainingRun], values: dict[str, Any]) -> AnyTrainingRun:
        return _build(cls, values, "a run of this kind")

    @classmethod
    def from_json(cls: type[AnyTrainingRun], path: Path) -> AnyTrainingRun:
        return cls.from_dict(json.loads(Path(path).read_text()))

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def train(
        self,
        directory: Path,
        *,
        resume: bool = False,
        start_from: Path | None = None,
        on_progress: Callable[[Progress], Any] | None = None,
    ) -> Any:
        """The trained network, in evaluation mode; see :func:`coterie.training.train`."""
        network = train(
            self.task(), self.training, directory, resume=resume, start_from=start_from, on_progress=on_progress
        )
        return network.eval()

    def ship(self, directory: Path, name: str, scores: dict[str, Any], shelf: Path = checkpoints.SHELF) -> Path:
        """Put the averaged weights of the run in ``directory`` on the shelf of shipped networks; returns the card."""
        network: nn.Module = self.task().model
        state_path = Path(directory) / STATE_FILE
        steps = load_average(state_path, network)
        parts = self.to_dict()
        config, data, settings = parts.pop("model"), parts.pop(self.source), parts.pop("training")
        about = {
            "name": name,
            "kind": self.kind,
            "about": self.about(),
            "config": config,
            "data": {"synthetic": self.drawn, **data},
            "training": {
                "steps": steps,
                "cpu_seconds": round(torch.load(state_path, weights_only=True)["cpu_seconds"]),
                "weights": sum(p.numel() for p in network.parameters()),
                "settings": settings,
                **parts,
            },
            "scores": scores,
            "licence": "BSD-3-Clause",
        }
        return checkpoints.save(network, about, shelf)


def _build(kind: Any, values: Any, what: str) -> Any:
    """``values`` from JSON as ``kind``: dataclasses from objects, tuples from lists."""
    if isinstance(kind, type) and is_dataclass(kind):
        hints = get_type_hints(kind)
        known = [field.name for field in fields(kind)]
        unknown = sorted(set(values) - set(known))
        if unknown:
            raise ValueError(f"{what} has {', '.join(known)}; got also {', '.join(unknown)}")
        return kind(**{name: _build(hints[name], value, f"the part {name!r}") for name, value in values.items()})
    if isinstance(values, list):
        inner = next(iter(get_args(kind)), Any)
        return tuple(_build(inner, value, what) for value in values)
    return values
