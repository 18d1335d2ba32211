"""A fit from one or several starts through the one EM loop, in one or several stages, with checkpoints."""

import hashlib
import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from coterie import __version__, em
from coterie.checkpoints.state import load_state, save_state
from coterie.files import check_writable, make_folder
from coterie.generative import data_parallel
from coterie.generative.evidence import Neighbours
from coterie.generative.mixture import EMSettings, Expectation, State
from coterie.generative.split_merge import MovingMixture
from coterie.generative.vaes import Densities

OnIteration = Callable[[em.Iteration], Any]


@dataclass(frozen=True)
class RestartPlan:
    """``n_init`` short runs, of which the one with the best bound is continued to ``max_iter``."""

    max_iter: int
    n_init: int = 1
    short_iter: int = 4
    tol: float = 1e-3  # EM ends when fewer rows than this share move

    @property
    def n_runs(self) -> int:
        return 1 if self.n_init == 1 else self.n_init + 1


@dataclass(frozen=True)
class Fit:
    state: State
    expectation: Expectation  # of a last E-step, after the last M-step
    n_iter: int
    converged: bool
    bounds: tuple[float, ...]  # of the short runs, or of the only one
    start_bound: float  # after the first M-step, when the networks know the start alone
    start_labels: Tensor
    halted: bool = False  # by the callback


@dataclass
class _Contestant:
    """One run, whose random numbers depend on its own seed alone."""

    mixture: MovingMixture
    state: State
    path: Path | None
    fingerprint: str
    converged: bool = False
    bound: float = math.nan  # at the end of a short run
    start_bound: float = math.nan
    halted: bool = False

    def advance(self, max_iter: int, tol: float, on_iteration: OnIteration | None) -> None:
        def stop(old: State, new: State, expectation: Expectation) -> bool:
            return new.iteration > 2 and expectation.moved < tol and expectation.settled

        def after(iteration: em.Iteration) -> bool:
            self.state = iteration.state
            if iteration.number == 2:
                self.start_bound = iteration.expectation.objective
            self.converged = stop(self.state, self.state, iteration.expectation)
            self.save()
            self.halted = bool(on_iteration is not None and on_iteration(iteration))
            return self.halted

        if not self.converged:
            steps = (self.mixture.e_step, self.mixture.m_step)
            first = self.state.iteration + 1
            run = em.run(self.state, *steps, max_iter=max_iter, stop=stop, on_iteration=after, first=first)
            self.state, self.converged = run.state, run.converged

    def compete(self, max_iter: int, tol: float, on_iteration: OnIteration | None) -> None:
        """A short run and its bound, unless the checkpoint has them."""
        if math.isnan(self.bound):
            self.advance(max_iter, tol, on_iteration)
            self.bound = self.judged().objective
            self.save()

    def judged(self) -> Expectation:
        """The result of a last E-step, in which no cluster is started again or moved."""
        mixture, settings = self.mixture, self.mixture.settings
        mixture.settings = replace(settings, revive_until=0, move_until=0, temperature=1.0)
        expectation = mixture.e_step(self.state)
        mixture.settings = settings
        return expectation

    def save(self) -> None:
        if self.path is None or not data_parallel.is_first():
            return
        saved = {
            "fingerprint": self.fingerprint,
            "state": self.state.to_dict(),
            "labels": self.mixture.labels,
            "converged": self.converged,
            "bound": self.bound,
            "start_bound": self.start_bound,
        }
        save_state(saved, self.path)

    def restore(self) -> None:
        if self.path is None or not self.path.exists():
            return
        saved = load_state(self.path, map_location=self.mixture.x_ND.device)
        if saved.get("fingerprint") != self.fingerprint:
            raise ValueError(
                f"{self.path} belongs to a fit of other rows or parameters: remove it, or give another checkpoint."
            )
        self.state.load(saved["state"])
        self.mixture.labels, self.converged = saved["labels"], saved["converged"]
        self.bound, self.start_bound = saved["bound"], saved["start_bound"]


Networks = Callable[[torch.Generator], Densities]
Run = Callable[[int], AbstractContextManager[OnIteration | None]]


@dataclass(frozen=True)
class Stage:
    """A fit from one state of the responsibilities: its settings, and how many runs and iterations it has."""

    settings: EMSettings
    plan: RestartPlan


def fit_in_stages(
    x_ND: Tensor,
    start: Callable[[int], Tensor],
    networks: Networks,
    stages: Sequence[Stage],
    *,
    neighbours: Neighbours | None = None,
    checkpoint: Path | None = None,
    run: Run = lambda number: nullcontext(),
) -> list[Fit]:
    """Fits in succession, each with new networks from the responsibilities that the one before it ended with.

    ``start(number)`` returns the responsibilities (N, K) of short run ``number``, and ``networks`` its untrained
    models. ``neighbours`` are those of the rows, if they are evidence in every E-step. ``run(number)`` is a context of
    each run of the plans, numbered in succession, that returns its callback. ``checkpoint`` is a folder: if it has the
    files of an interrupted fit, the fit continues from them and ends in the same weights, bit for bit. The files remain
    until the last stage has ended, and are then removed.
    """
    if checkpoint is not None:
        make_checkpoint_folder(checkpoint)
    found: list[Fit] = []
    files: list[Path] = []
    first_run = 0
    for number, stage in enumerate(stages):
        prefix = f"stage-{number + 1}-" if number else ""

        def numbered(own: int, first: int = first_run) -> AbstractContextManager[OnIteration | None]:
            return run(first + own)

        begins = (lambda _, end=found[-1]: end.expectation.responsibilities_NK) if found else start
        paths = [checkpoint / f"{prefix}run-{i}.pt" for i in range(stage.plan.n_init)] if checkpoint else None
        one = _fit_stage(x_ND, begins, networks, stage, neighbours, paths, numbered)
        found.append(one)
        files += paths or []
        first_run += stage.plan.n_runs
        if one.halted:
            break
    if data_parallel.is_first():
        for file in files:
            file.unlink(missing_ok=True)
    return found


def make_checkpoint_folder(path: Path) -> None:
    """Make the folder, or raise an error if no file can be written to it."""
    make_folder(path)
    check_writable(path / "run-0.pt")


def _fit_stage(
    x_ND: Tensor,
    start: Callable[[int], Tensor],
    networks: Networks,
    stage: Stage,
    neighbours: Neighbours | None,
    paths: list[Path] | None,
    run: Run,
) -> Fit:
    """One stage; ``paths`` are the files of its checkpoints, one per start."""
    settings, plan = stage.settings, stage.plan
    contestants: list[_Contestant] = []
    for number in range(plan.n_init):
        own = Stage(replace(settings, seed=settings.seed + number), plan)
        one = _contestant(x_ND, start(number), networks, own, neighbours)
        one.path = paths[number] if paths else None
        one.restore()
        contestants.append(one)
    chosen = contestants[0]
    if plan.n_init > 1:
        for number, one in enumerate(contestants):
            with run(number) as on_iteration:
                one.compete(min(plan.short_iter, plan.max_iter), plan.tol, on_iteration)
        chosen = max(contestants, key=lambda one: one.bound)
    with run(plan.n_runs - 1) as on_iteration:
        chosen.advance(plan.max_iter, plan.tol, on_iteration)
    expectation = chosen.judged()
    return Fit(
        chosen.state,
        expectation,
        chosen.state.iteration,
        chosen.converged,
        tuple(one.bound for one in contestants) if plan.n_init > 1 else (expectation.objective,),
        expectation.objective if chosen.state.iteration == 1 else chosen.start_bound,
        chosen.mixture.start_NK.argmax(1),
        chosen.halted,
    )


def _contestant(
    x_ND: Tensor, start_NK: Tensor, networks: Networks, stage: Stage, neighbours: Neighbours | None
) -> _Contestant:
    settings = stage.settings
    mixture = MovingMixture(x_ND, start_NK, settings, neighbours)
    models = networks(torch.Generator().manual_seed(settings.seed)).to(x_ND.device)
    what = (__version__, asdict(settings), asdict(stage.plan), tuple(x_ND.shape))
    described = repr((*what, neighbours is not None)).encode()
    content = (x_ND.cpu().numpy(), start_NK.cpu().numpy())
    fingerprint = hashlib.sha256(b"".join([described, *(array.tobytes() for array in content)])).hexdigest()
    return _Contestant(mixture, mixture.begin(models), None, fingerprint)
