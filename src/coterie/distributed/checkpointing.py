"""Checkpoints of fits on Dask data: the centres are saved after every iteration, so that a fit can be resumed.

Example::

    with coterie.distributed.checkpoint("centres.safetensors", resume=True):
        KMeans(100).fit(X)
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from coterie.files import check_writable, replacing

_current: ContextVar["Checkpoint | None"] = ContextVar("checkpoint", default=None)


@dataclass(frozen=True)
class Saved:
    """The state of a fit between two iterations."""

    number: int  # iterations that are done; 0 for the start
    places: np.ndarray  # (k, d)
    weights: np.ndarray | None  # (k,) mixing weights
    gamma: float | None
    done: bool = False  # whether the loop had stopped by itself


@dataclass(frozen=True)
class Checkpoint:
    """The file in which fits save their centres, and whether they resume from it."""

    path: Path
    resume: bool

    def save(self, saved: Saved, problem: dict) -> None:
        """Write the state atomically. ``problem`` identifies the fit that it belongs to."""
        from safetensors.numpy import save

        tensors = {"places": np.ascontiguousarray(saved.places)}
        if saved.weights is not None:
            tensors["weights"] = np.ascontiguousarray(saved.weights)
        header = {"number": saved.number, "gamma": saved.gamma, "done": saved.done, "problem": problem}
        with replacing(self.path) as temporary, open(temporary, "wb") as file:
            file.write(save(tensors, metadata={"coterie-checkpoint": json.dumps(header)}))
            file.flush()
            os.fsync(file.fileno())

    def load(self, problem: dict) -> Saved | None:
        """The state to resume from, or None to start a new fit."""
        if not self.resume or not self.path.exists():
            return None
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(os.fspath(self.path), framework="numpy") as file:
                header = json.loads((file.metadata() or {})["coterie-checkpoint"])
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except (SafetensorError, KeyError) as error:
            raise ValueError(f"{self.path} is not a checkpoint of a fit: remove it or use another name.") from error
        different = [name for name in problem if header["problem"].get(name) != problem[name]]
        if different:
            name = different[0]
            raise ValueError(
                f"{self.path} belongs to another fit: its {name} is {header['problem'].get(name)}, here it is "
                f"{problem[name]}. Use another file, or start a new fit with resume=False."
            )
        return Saved(header["number"], tensors["places"], tensors.get("weights"), header["gamma"], header["done"])


@contextmanager
def checkpoint(path: str | os.PathLike, *, resume: bool = False) -> Iterator[Checkpoint]:
    """Save the centres of fits on Dask data to ``path`` after every iteration, inside a ``with`` block.

    A resumed fit gives the same result as an uninterrupted one.

    Parameters
    ----------
    path : str or path-like
        The safetensors file. It is replaced atomically.
    resume : bool, default=False
        Whether a fit continues from the centres in the file, if it exists. The file must belong to a fit of the same
        data, algorithm and parameters; otherwise a ValueError is raised. If False, an existing file is overwritten.

    Yields
    ------
    checkpoint : Checkpoint
        The checkpoint, for inspection.
    """
    token = _current.set(Checkpoint(check_writable(path), resume))
    try:
        value = _current.get()
        assert value is not None
        yield value
    finally:
        _current.reset(token)


def current() -> Checkpoint | None:
    """The checkpoint of the surrounding ``with`` block, or None."""
    return _current.get()
