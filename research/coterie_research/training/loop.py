"""The training loop of all learned models: learning-rate schedule, weight averaging, checkpoints, resuming, logs.

Each model supplies a :class:`Task`, and the loop trains its network. Lightning Fabric takes care of the device, the
precision and several processes. All random numbers of a step come from a generator seeded by (seed, process, step), so
that a run that was interrupted and resumed ends in exactly the same weights as one that was not.
"""

import csv
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from coterie.checkpoints.state import load_state, save_state
from coterie.files import only_writer, replacing
from coterie_research.training import bfloat16

STATE_FILE = "state.pt"
LOG_FILE = "log.csv"


@dataclass(frozen=True)
class TrainingConfig:
    """How a network is trained.

    Parameters
    ----------
    steps : int
        Number of optimiser steps.
    learning_rate : float, default=2e-3
        The learning rate of AdamW after the warm-up.
    matrix_learning_rate : float, default=0.0
        If positive, Muon trains the matrices that the task names, with this learning rate, and AdamW trains the rest.
    weight_decay : float, default=0.01
    betas : (float, float), default=(0.9, 0.98)
        The decay rates of AdamW's two moment estimates.
    warmup_steps : int, default=100
        Number of steps over which the learning rate rises linearly to its full value.
    schedule : {"stable", "cosine"}, default="stable"
        "stable" keeps the learning rate after the warm-up and decreases it linearly to zero over the last
        ``decay_steps``. Without a decay, such a run can be extended later by raising ``steps``. "cosine" decreases it
        over all steps.
    decay_steps : int, default=0
    clip_norm : float, default=1.0
        Gradients are clipped to this norm.
    average_decay : float, default=0.999
        Decay of the exponential moving average of the weights, which is the trained network.
    seed : int, default=0
        Determines the initial weights and the training data.
    checkpoint_every, log_every : int, default=500 and 50
        Number of steps between two checkpoints, and between two lines of the log.
    accelerator, devices, precision : default="cpu", 1 and "32-true"
        Passed to ``lightning.fabric.Fabric``.
    """

    steps: int
    learning_rate: float = 2e-3
    matrix_learning_rate: float = 0.0
    weight_decay: float = 0.01
    betas: tuple[float, float] = (0.9, 0.98)
    warmup_steps: int = 100
    schedule: Literal["stable", "cosine"] = "stable"
    decay_steps: int = 0
    clip_norm: float = 1.0
    average_decay: float = 0.999
    seed: int = 0
    checkpoint_every: int = 500
    log_every: int = 50
    accelerator: str = "cpu"
    devices: int = 1
    precision: Any = "32-true"

    def rate(self, step: int) -> float:
        """The factor by which the learning rate is multiplied in step ``step``, counted from 0."""
        factor = min(1.0, (step + 1) / max(1, self.warmup_steps))
        if self.schedule == "cosine":
            return factor * 0.5 * (1 + math.cos(math.pi * step / self.steps))
        left = self.steps - step
        return factor * min(1.0, left / self.decay_steps) if self.decay_steps else factor


class Task(NamedTuple):
    """What is trained: a network, its loss in a step with numbers for the log, and the matrices that Muon may train."""

    model: nn.Module
    loss: Callable[[nn.Module, int, torch.Generator], tuple[Tensor, dict[str, float]]]
    matrices: Iterable[nn.Parameter] = ()


@dataclass(frozen=True)
class Progress:
    """One line of the log, for progress bars. ``cpu_seconds`` does not count the time in which a process was paused."""

    step: int
    steps: int
    loss: float
    metrics: dict[str, float]
    cpu_seconds: float
    cpu_seconds_left: float


@dataclass
class Position:
    """How far a run has come; the losses are those since the last line of the log."""

    step: int = 0
    cpu_seconds: float = 0.0
    loss_sum: float = 0.0
    loss_count: int = 0


def train(
    task: Task,
    config: TrainingConfig,
    directory: Path,
    *,
    resume: bool = False,
    start_from: Path | None = None,
    on_progress: Callable[[Progress], Any] | None = None,
) -> nn.Module:
    """Train ``task.model`` and return the moving average of its weights; log and checkpoint go to ``directory``.

    With ``resume`` training continues from the checkpoint in ``directory``; ``start_from`` is the checkpoint of another
    run to start from. If ``on_progress`` returns a true value, training ends after a checkpoint.
    """
    from lightning.fabric import Fabric  # takes seconds

    devices, nodes = _processes(config)
    fabric = Fabric(accelerator=config.accelerator, devices=devices, num_nodes=nodes, precision=config.precision)
    if devices * nodes > 1:
        fabric.launch()
    state_path = check_folder(Path(directory), resume=resume) / STATE_FILE
    origin = state_path if resume else start_from
    # Muon multiplies in bfloat16 whatever the precision
    in_bfloat16 = config.matrix_learning_rate > 0 or "bf16" in str(config.precision)
    with (
        bfloat16.products() if in_bfloat16 else nullcontext(),
        only_writer(state_path.parent) if fabric.global_rank == 0 else nullcontext(),
    ):
        return _train(task, config, fabric, state_path, origin, on_progress)


def _train(
    task: Task,
    config: TrainingConfig,
    fabric: Any,
    state_path: Path,
    origin: Path | None,
    on_progress: Callable[[Progress], Any] | None,
) -> nn.Module:
    optimizers = _optimizers(task, config)
    model, *prepared = fabric.setup(task.model, *optimizers)
    average = AveragedModel(task.model, multi_avg_fn=get_ema_multi_avg_fn(config.average_decay))
    at = Position()
    if origin is not None:
        at = _restore(origin, task.model, average, optimizers)
    log = _Log(state_path.parent, at.step)
    generator = torch.Generator(device=fabric.device)
    began = time.process_time() - at.cpu_seconds
    first_step, first_cpu = at.step, at.cpu_seconds
    while at.step < config.steps:
        for optimizer, base in zip(optimizers, (config.learning_rate, config.matrix_learning_rate)):
            for group in optimizer.param_groups:
                group["lr"] = base * config.rate(at.step)
        seeds = np.random.SeedSequence((config.seed, fabric.global_rank, at.step))
        generator.manual_seed(int(seeds.generate_state(1, np.uint64)[0]) >> 1)
        loss, metrics = task.loss(model, at.step, generator)
        fabric.backward(loss)
        norm = nn.utils.clip_grad_norm_(task.model.parameters(), config.clip_norm)
        for optimizer in prepared:
            if torch.isfinite(norm):
                optimizer.step()
            optimizer.zero_grad()
        average.update_parameters(task.model)
        at.step += 1
        at.loss_sum += loss.item()
        at.loss_count += 1
        at.cpu_seconds = time.process_time() - began
        halted = False
        if at.step % config.log_every == 0 or at.step == config.steps:
            left = (at.cpu_seconds - first_cpu) / (at.step - first_step) * (config.steps - at.step)
            row = {"rate": config.rate(at.step - 1), "gradient_norm": norm.item(), **metrics}
            progress = Progress(at.step, config.steps, at.loss_sum / at.loss_count, row, at.cpu_seconds, left)
            at.loss_sum, at.loss_count = 0.0, 0
            if fabric.global_rank == 0:
                log.write(progress)
            halted = on_progress is not None and bool(on_progress(progress))
        if (at.step % config.checkpoint_every == 0 or at.step == config.steps or halted) and fabric.global_rank == 0:
            _save(state_path, task.model, average, optimizers, at)
        if halted:
            break
    return average.module


def check_folder(directory: Path, *, resume: bool) -> Path:
    """The folder of a run, created if need be; an error if there is nothing to resume, or something to overwrite."""
    state_path = directory / STATE_FILE
    if resume and not state_path.exists():
        raise FileNotFoundError(
            f"There is nothing to resume, because {state_path} does not exist: start without --resume."
        )
    if not resume and state_path.exists():
        raise FileExistsError(f"{state_path} holds a run already: use --resume to continue it, or another folder.")
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def _processes(config: TrainingConfig) -> tuple[int, int]:
    """Number of processes on this machine, and of machines: as started by torchrun, otherwise as configured."""
    if "LOCAL_WORLD_SIZE" not in os.environ:
        return config.devices, 1
    here = int(os.environ["LOCAL_WORLD_SIZE"])
    return here, int(os.environ["WORLD_SIZE"]) // here


def _optimizers(task: Task, config: TrainingConfig) -> list[torch.optim.Optimizer]:
    matrices = list(task.matrices) if config.matrix_learning_rate > 0 else []
    taken = {id(p) for p in matrices}
    rest = [p for p in task.model.parameters() if p.requires_grad and id(p) not in taken]
    optimizers: list[torch.optim.Optimizer] = [
        torch.optim.AdamW(rest, lr=config.learning_rate, betas=config.betas, weight_decay=config.weight_decay)
    ]
    if matrices:
        optimizers.append(torch.optim.Muon(matrices, lr=config.matrix_learning_rate, weight_decay=config.weight_decay))
    return optimizers


def _save(
    path: Path,
    model: nn.Module,
    average: AveragedModel,
    optimizers: list[torch.optim.Optimizer],
    at: Position,
) -> None:
    state = {
        **asdict(at),
        "model": model.state_dict(),
        "average": average.state_dict(),
        "optimizers": [optimizer.state_dict() for optimizer in optimizers],
    }
    save_state(state, path)


def _restore(path: Path, model: nn.Module, average: AveragedModel, optimizers: list[torch.optim.Optimizer]) -> Position:
    state = load_state(path)
    with _fitting(path):
        model.load_state_dict(state["model"])
        average.load_state_dict(state["average"])
        for optimizer, saved in zip(optimizers, state["optimizers"]):
            optimizer.load_state_dict(saved)
        return _position(state)


@contextmanager
def _fitting(path: Path) -> Iterator[None]:
    """Errors of a state that can be read, but belongs to another network."""
    try:
        yield
    except (KeyError, RuntimeError, TypeError, ValueError, AttributeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(f"{path} does not fit this network ({reason}): use the folder of the same run.") from error


def _position(state: dict[str, Any]) -> Position:
    return Position(**{field.name: state.get(field.name, field.default) for field in fields(Position)})


def load_average(path: Path, model: nn.Module) -> Position:
    """Load the averaged weights of the checkpoint ``path`` into ``model``; returns how far the run had come."""
    if not path.is_file():
        raise FileNotFoundError(f"There is no checkpoint {path}: train the network first with `coterie train`.")
    state = load_state(path)
    prefix = "module."
    with _fitting(path):
        weights = {k.removeprefix(prefix): v for k, v in state["average"].items() if k.startswith(prefix)}
        model.load_state_dict(weights)
        return _position(state)


class _Log:
    """A CSV file. Rows after the step to resume from are dropped."""

    def __init__(self, directory: Path, step: int):
        self._path = directory / LOG_FILE
        self._rows: list[dict[str, Any]] = []
        if self._path.exists():
            with open(self._path, newline="") as file:
                self._rows = [row for row in csv.DictReader(file) if int(row["step"]) <= step]

    def write(self, progress: Progress) -> None:
        numbers = {"loss": progress.loss, **progress.metrics, "cpu_seconds": progress.cpu_seconds}
        self._rows.append({"step": progress.step, **{k: f"{v:.6g}" for k, v in numbers.items()}})
        columns = list(dict.fromkeys(key for row in self._rows for key in row))
        with replacing(self._path) as temporary, open(temporary, "w", newline="") as file:
            writer = csv.DictWriter(file, columns, lineterminator="\n")
            writer.writeheader()
            writer.writerows(self._rows)
