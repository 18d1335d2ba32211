"""Failures at the n-th call of everything that writes files: ``python -m tests.fuzz.failures --count 10000``.

A task writes a file while one of its calls, of Python or of compiled code, raises that memory or disk space is used
up. Afterwards the file is the old one or the new one, and the same task, undisturbed, writes it. A temporary file may
only stay behind if the call that failed was a part of removing it.
"""

import argparse
import os
import random
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from errno import ENOSPC
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd

Task = Callable[[Path], object]
CLEANING = {"unlink", "remove", "__exit__"}


class Failure:
    """Counts calls in this thread, and raises at one of them. Calls of the interpreter itself are left alone."""

    def __init__(self, at: int, error: BaseException | None = None):
        self.at, self.error, self.calls = at, error, 0
        self.hit: set[str] = set()  # the call that failed, and those around it

    def __enter__(self) -> "Failure":
        sys.setprofile(self._count)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _count(self, frame, event, given) -> None:
        if event not in ("call", "c_call") or "importlib" in frame.f_code.co_filename:
            return
        self.calls += 1
        if self.calls == self.at:
            self.hit = {given.__name__} if event == "c_call" else set()
            while frame is not None:
                self.hit.add(frame.f_code.co_name)
                frame = frame.f_back
            assert self.error is not None
            raise self.error


def tasks() -> dict[str, Task]:
    """What writes a file. Everything that does not belong to the writing is done before."""
    import torch

    import coterie
    from coterie import cluster_table
    from coterie.checkpoints import state
    from coterie.distributed.checkpointing import Checkpoint, Saved
    from coterie.plot import save_clusters
    from coterie.tables.label_files import write_labels
    from coterie.tabular.onnx_export import export_onnx

    rows = np.random.default_rng(0).normal(size=(30, 2)) + 9 * (np.arange(30) % 2)[:, None]
    table = pd.DataFrame(rows, columns=["a", "b"]).assign(name=[f"n{i}" for i in range(30)])
    model = coterie.KMeans(2, random_state=0).fit(rows)
    found = cluster_table(table[["a", "b"]], clusters=2)
    problem = {"number of clusters": 2, "number of columns": 2}
    return {
        "model": model.save,
        "edited.model": coterie.KMeans(2, random_state=0).fit(rows).merge([0, 1]).save,
        "table.model": found.model.save,
        "report.html": found.report,
        "picture.png": lambda path: save_clusters(path, rows, model.labels_),
        **({"model.onnx": partial(export_onnx, found.model)} if find_spec("onnx") else {}),
        "state.pt": partial(state.save_state, {"a": torch.ones(3)}),
        "checkpoint": lambda path: Checkpoint(path, False).save(Saved(1, rows[:2], None, None), problem),
        **{
            f"labels{kind}": lambda path: write_labels(path, model.labels_, table)
            for kind in (".csv", ".tsv", ".csv.gz", ".parquet", ".xlsx")
        },
        "labels.npy": lambda path: write_labels(path, model.labels_),
    }


def errors() -> list[BaseException]:
    return [MemoryError("injected"), OSError(ENOSPC, "No space left on device (injected)")]


def calls_of(task: Task, folder: Path, name: str) -> int:
    """How many calls a task makes, once what it imports is there."""
    task(folder / name)
    with Failure(-1) as counted:
        task(folder / name)
    return counted.calls


def attempt(task: Task, name: str, at: int, error: BaseException) -> str:
    """Let the task fail at a call, and return what is wrong afterwards, or nothing."""
    with tempfile.TemporaryDirectory() as there:
        path, old = Path(there) / name, b"the old file"
        path.write_bytes(old)
        failure, ended = Failure(at, error), False
        try:
            with failure:
                task(path)
            ended = True
        except Exception:  # packages turn what was injected into errors of their own
            pass
        content = path.read_bytes() if path.exists() else b""
        left = sorted(set(os.listdir(there)) - {name})
        if left and not failure.hit & CLEANING:
            return f"{left} stayed behind"
        task(path)
        new = path.read_bytes()
        if content != old and len(content) != len(new) and not _about_as_long(content, new):
            return f"neither the old file nor the new one, but {len(content)} of {len(new)} bytes"
        if ended and content == old:
            return "the task ended as if it had written"
    return ""


def _about_as_long(content: bytes, new: bytes) -> bool:
    """Dates and ids inside make files of one content differ by some bytes."""
    return abs(len(content) - len(new)) < 0.01 * len(new) and content[-4:] == new[-4:]


def places(rng: random.Random, calls: int) -> int:
    """A call: half of them among the last hundred, where files are written and replaced."""
    return rng.randint(max(1, calls - 100), calls) if rng.random() < 0.5 else rng.randint(1, calls)


def inject(count: int, seed: int) -> tuple[Counter, list[str]]:
    """Injected failures by task, and what went wrong."""
    rng, done, wrong = random.Random(seed), Counter(), []
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as there:
        known = {name: (task, calls_of(task, Path(there), name)) for name, task in tasks().items()}
    while done.total() < count:
        for name, (task, calls) in known.items():
            at, kind = places(rng, calls), rng.randrange(len(errors()))
            done[name] += 1
            if said := attempt(task, name, at, errors()[kind]):
                wrong.append(f"{name}, call {at} of {calls}, error {kind}: {said}")
    return done, wrong


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    sys.unraisablehook = lambda unraisable: None  # archives that were left half-written
    done, wrong = inject(given.count, given.seed)
    print(f"{done.total()} injected failures, {len(wrong)} left something wrong: {dict(done)}", *wrong, sep="\n")
    sys.exit(bool(wrong))
