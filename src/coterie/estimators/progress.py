"""Progress of a fit: a progress bar on standard error, and scikit-learn's callbacks if they are available."""

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np

from coterie.em import Iteration

try:
    from sklearn.callback import CallbackSupportMixin
except ImportError:  # scikit-learn < 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Placeholder for versions of scikit-learn without callbacks."""


class Watch:
    """Observes one fit. ``run(number)`` provides the ``on_iteration`` function of one of its runs."""

    def __init__(self, estimator, X, n_runs: int, max_iter: int, bar=None):
        self.estimator, self.X = estimator, X
        self.n_runs, self.max_iter = n_runs, max_iter
        self.bar = bar
        self.context = None
        if getattr(estimator, "_skl_callbacks", None):
            self.context = estimator._init_callback_context(max_subtasks=n_runs)
            self.context.call_on_fit_task_begin(estimator=estimator, X=X)

    @property
    def silent(self) -> bool:
        """Whether there is nothing to report to."""
        return self.context is None and self.bar is None

    def close(self, attributes: Mapping[str, Any]) -> None:
        if self.context is not None:
            self.context.call_on_fit_task_end(
                estimator=self.estimator, X=self.X, reconstruction_attributes=lambda: attributes
            )

    @contextmanager
    def run(self, number: int, max_iter: int | None = None) -> Iterator[Any]:
        """The ``on_iteration`` function of run ``number`` (from 0), or None if there is nothing to report to.

        ``max_iter`` is the limit of this run if it is not that of all.
        """
        max_iter = self.max_iter if max_iter is None else max_iter
        if self.silent:
            yield None
            return
        task = None
        if self.bar is not None:
            title = f"{type(self.estimator).__name__} {number + 1}/{self.n_runs}"
            task = self.bar.add_task(title, total=max_iter, objective="", moved="")
        run_context = None
        if self.context is not None:
            run_context = self.context.subcontext(task_name="run", max_subtasks=max_iter)
            run_context.call_on_fit_task_begin(estimator=self.estimator, X=self.X)
        yield _Listener(self, task, run_context)
        if task is not None:
            done = self.bar.tasks[task].completed
            self.bar.update(task, total=done, completed=done)
        if run_context is not None:
            run_context.call_on_fit_task_end(estimator=self.estimator, X=self.X)


class _Listener:
    def __init__(self, watch: Watch, task, context):
        self.watch, self.task, self.context = watch, task, context
        self.labels: np.ndarray | None = None

    def __call__(self, iteration: Iteration) -> bool:
        expectation = iteration.expectation
        if self.task is not None:
            moved = self._moved_share(expectation)
            self.watch.bar.update(
                self.task,
                completed=iteration.number,
                objective=_told(expectation),
                moved="" if moved is None else f"{moved:.1%} moved",
            )
        if self.context is None:
            return False
        estimator = self.watch.estimator
        step = self.context.subcontext(task_name="iteration")
        step.call_on_fit_task_begin(estimator=estimator, X=self.watch.X)
        return bool(
            step.call_on_fit_task_end(
                estimator=estimator,
                X=self.watch.X,
                reconstruction_attributes=lambda: estimator._attributes_during_fit(iteration),
            )
        )

    def _moved_share(self, expectation) -> float | None:
        """The share of the rows that moved since the last iteration. An engine without labels provides it."""
        if expectation.labels is None:
            return expectation.moved
        labels = np.asarray(expectation.labels)
        share = None if self.labels is None else float(np.mean(labels != self.labels))
        self.labels = labels.copy()
        return share


def _told(expectation) -> str:
    """The summary of an iteration, or its objective."""
    return expectation.summary() if hasattr(expectation, "summary") else f"objective {expectation.objective:.6g}"


class _Lines:
    """A replacement for the progress bar that prints one line per iteration, with an upper bound on the time left."""

    def __init__(self):
        self.tasks: list[Any] = []

    def add_task(self, title: str, total: int, **fields: str) -> int:
        self.tasks.append(SimpleNamespace(title=title, total=total, completed=0, began=None))
        return len(self.tasks) - 1

    def update(self, task: int, completed: int, total: int | None = None, **fields: str) -> None:
        one = self.tasks[task]
        if total is not None:
            return
        told = [text for text in fields.values() if text]
        if one.began is None:  # what came before the first iteration says nothing about the others
            one.began, one.first = time.monotonic(), completed
        else:
            left = (time.monotonic() - one.began) / (completed - one.first) * (one.total - completed)
            told.append(f"at most {left:,.0f} s left")
        one.completed = completed
        print(f"{one.title}: iteration {completed} of {one.total}, {', '.join(told)}", file=sys.stderr, flush=True)


@contextmanager
def watching(estimator, X, n_runs: int, max_iter: int) -> Iterator[Watch]:
    """Observe a fit. ``verbose=1`` shows a progress bar on standard error, and 2 prints one line per iteration."""
    verbose = getattr(estimator, "verbose", 0)
    if not verbose:
        yield Watch(estimator, X, n_runs, max_iter)
        return
    if verbose > 1:
        yield Watch(estimator, X, n_runs, max_iter, _Lines())
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[objective]}  {task.fields[moved]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        yield Watch(estimator, X, n_runs, max_iter, bar)
