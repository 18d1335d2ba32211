"""A training run: what is trained, on which data and how, read from a JSON file; and how its weights are shipped.

The package of each model derives a dataclass from :class:`TrainingRun` that names the parts of its configuration.
Reading the file, training, resuming and shipping are the same for all of them.
"""

import json
import os
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, fields, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, TypeVar, get_args, get_type_hints

import torch
from torch import Tensor, nn

from coterie import checkpoints
from coterie.checkpoints.store import check_name
from coterie.files import replacing
from coterie_research.training.loop import STATE_FILE, Progress, Task, TrainingConfig, check_folder, load_average, train

RUN_FILE = "run.json"  # in the folder of a run: its kind and configuration
# kind of network -> module whose ``RUN`` is the class of its training runs
KINDS = {
    "flow": "coterie_research.training.flow.run",
    "incontext": "coterie_research.training.incontext.run",
    "learned-lloyd": "coterie_research.training.learned_lloyd",
    "zeroshot": "coterie_research.training.zeroshot.run",
}
AnyTrainingRun = TypeVar("AnyTrainingRun", bound="TrainingRun")


@dataclass(frozen=True)
class TrainingRun:
    """Everything that defines a run. Subclasses add the parts that their networks need in addition."""

    model: Any
    training: TrainingConfig

    kind: ClassVar[str]  # of network, as on its card
    source: ClassVar[str] = "prior"  # the part of the configuration that describes the training data
    drawn: ClassVar[str]  # the training data in words

    def network(self) -> nn.Module:
        """A network to train; torch's random numbers have been seeded."""
        raise NotImplementedError

    def loss(self, model: Any, step: int, generator: torch.Generator) -> tuple[Tensor, dict[str, float]]:
        """The loss of one step on new data drawn from ``generator``, and further numbers for the log."""
        raise NotImplementedError

    def matrices(self, network: Any) -> Iterable[nn.Parameter]:
        """The weight matrices that Muon may train."""
        return ()

    def task(self) -> Task:
        """The network with its initial weights, and its loss."""
        torch.manual_seed(self.training.seed)
        network = self.network()
        return Task(network, self.loss, self.matrices(network))

    def about(self) -> str:
        """One line that describes the network on its card."""
        raise NotImplementedError

    def calibrated(self: AnyTrainingRun, network: Any) -> AnyTrainingRun:
        """The run to ship, after fitting whatever must be fitted to the trained network; by default nothing."""
        return self

    @classmethod
    def from_dict(cls: type[AnyTrainingRun], values: dict[str, Any]) -> AnyTrainingRun:
        return _build(cls, values, f"A configuration of kind {cls.kind!r}")

    @classmethod
    def from_json(cls: type[AnyTrainingRun], path: str | os.PathLike) -> AnyTrainingRun:
        return cls.from_dict(read_json(path))

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def train(
        self,
        directory: str | os.PathLike,
        *,
        resume: bool = False,
        start_from: Path | None = None,
        on_progress: Callable[[Progress], Any] | None = None,
    ) -> Any:
        """Train the network and return it in evaluation mode; see :func:`coterie_research.training.loop.train`.

        The kind and the configuration are written to ``run.json`` in ``directory``, where :func:`read_run` finds them.
        """
        directory = check_folder(Path(directory), resume=resume)
        # A part that was replaced by a class of the user's own cannot be read from a file: ship such a run from Python.
        text = json.dumps({"kind": self.kind, "config": self.to_dict()}, indent=1)
        if type(self).from_dict(json.loads(text)["config"]) == self:
            with replacing(directory / RUN_FILE) as file:
                file.write_text(text + "\n")
        network = train(
            self.task(), self.training, directory, resume=resume, start_from=start_from, on_progress=on_progress
        )
        return network.eval()

    def ship(
        self,
        directory: str | os.PathLike,
        name: str,
        scores: dict[str, Any] | None = None,
        shelf: Path | None = None,
        *,
        about: str | None = None,
        licence: str = "not stated",
        force: bool = False,
    ) -> Path:
        """Write the averaged weights of the run in ``directory``, with a card, to a shelf of networks.

        Parameters
        ----------
        directory : path
            The folder in which the run was trained.
        name : str
            The name under which estimators find the network.
        scores : dict or None, default=None
            What the network scores, for its card.
        shelf : Path or None, default=None
            The folder to write to; None is :func:`coterie.checkpoints.user_shelf`.
        about : str or None, default=None
            One line about the network, for its card; None describes its configuration.
        licence : str, default="not stated"
            The licence of the weights, for the card.
        force : bool, default=False
            Whether to replace a network of this name on ``shelf``.

        Returns
        -------
        card : Path
        """
        shelf = checkpoints.user_shelf() if shelf is None else Path(shelf)
        check_free(name, shelf, force=force)
        network: nn.Module = self.task().model
        trained = load_average(Path(directory) / STATE_FILE, network)
        parts = self.calibrated(network.eval()).to_dict()
        config, data, settings = parts.pop("model"), parts.pop(self.source), parts.pop("training")
        card = {
            "name": name,
            "kind": self.kind,
            "about": about or self.about(),
            "config": config,
            "data": {"synthetic": self.drawn, **data},
            "training": {
                "steps": trained.step,
                "cpu_seconds": round(trained.cpu_seconds),
                "weights": sum(p.numel() for p in network.parameters()),
                "settings": settings,
                **parts,
            },
            "scores": scores or {},
            "licence": licence,
        }
        return checkpoints.save(network, card, shelf)


def run_class(kind: str) -> type[TrainingRun]:
    """The class of the training runs of that kind of network."""
    return import_module(KINDS[kind]).RUN


def read_json(path: str | os.PathLike) -> Any:
    """The content of a JSON file, or an error that names the file."""
    try:
        return json.loads(Path(path).read_text())
    except ValueError as error:
        raise ValueError(f"{path} is not valid JSON ({error}): correct it.") from error


def read_run(directory: str | os.PathLike) -> TrainingRun:
    """The run that was trained in ``directory``."""
    path = Path(directory) / RUN_FILE
    if not path.is_file():
        raise FileNotFoundError(
            f"{directory} does not hold a training run: there is no {RUN_FILE} in it. Name the folder that was the "
            "--output of `coterie train`; for a run of an earlier version, call `coterie train` with --resume once."
        )
    saved = json.loads(path.read_text())
    return run_class(saved["kind"]).from_dict(saved["config"])


def check_free(name: str, shelf: Path, *, force: bool) -> None:
    """Raise an error unless a network may be called ``name`` on ``shelf``."""
    check_name(name)
    bundled = [card["name"] for card in checkpoints.available(checkpoints.SHELF)]
    if name in bundled and shelf.resolve() != checkpoints.SHELF.resolve():
        raise ValueError(f"The name {name!r} belongs to a network that comes with the package: choose another name.")
    if not force and (shelf / f"{name}.json").exists():
        raise FileExistsError(f"There is already a network {name!r} in {shelf}: choose another name or use --force.")


def _build(kind: Any, values: Any, what: str) -> Any:
    """``values`` from JSON as ``kind``: dataclasses from objects, tuples from lists."""
    if isinstance(kind, type) and is_dataclass(kind):
        hints = get_type_hints(kind)
        known = [field.name for field in fields(kind)]
        if not isinstance(values, dict) or (unknown := sorted(set(values) - set(known))):
            got = f"unknown: {', '.join(unknown)}" if isinstance(values, dict) else f"got {values!r}"
            raise ValueError(f"{what} has the entries {', '.join(known)}; {got}.")
        return kind(**{name: _build(hints[name], value, f"The part {name!r}") for name, value in values.items()})
    if isinstance(values, list):
        inner = next(iter(get_args(kind)), Any)
        return tuple(_build(inner, value, what) for value in values)
    return values
