"""Checkpoints of fits on Dask data: the centres are saved after every iteration, so that a fit can be resumed.

Example::

    with coterie.distributed.checkpoint("centres.safetensors", resume=True):
        KMeans(100).fit(X)
"""

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from coterie.checkpoints.json_shapes import check
from coterie.files import check_writable, replacing

_PROBLEM = {"number of clusters": int, "number of columns": int}
HEADER = {"number": int, "gamma": (None, float), "done": bool, "problem": _PROBLEM}
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
        with replacing(self.path) as temporary:
            temporary.write_bytes(save(tensors, metadata={"coterie-checkpoint": json.dumps(header)}))

    def load(self, problem: dict) -> Saved | None:
        """The state to resume from, or None to start a new fit."""
        if not self.resume or not self.path.exists():
            return None
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(os.fspath(self.path), framework="numpy") as file:
                header = json.loads((file.metadata() or {})["coterie-checkpoint"])
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            belongs, saved = dict(header["problem"]), _checked(header, tensors)
        except (SafetensorError, KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            reason = str(error).splitlines()[0] if isinstance(error, ValueError) else "it cannot be read"
            raise ValueError(
                f"{self.path} is not a checkpoint of a fit ({reason}): remove it or use another name."
            ) from error
        different = [name for name in problem if belongs.get(name) != problem[name]]
        if different:
            name = different[0]
            raise ValueError(
                f"{self.path} belongs to another fit: its {name} is {belongs.get(name, 'unknown')}, here it is "
                f"{problem[name]}. Use another file, or start a new fit without resuming."
            )
        return saved


def identified(value: Any) -> Any:
    """A parameter as JSON that differs for different parameters: arrays and generators by their content."""
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.random.RandomState):
        _, keys, *rest = value.get_state(legacy=True)
        return f"generator {_digest(np.asarray(keys))} {rest}"
    if callable(value):
        return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', type(value).__qualname__)}"
    array = np.asarray(value)
    return f"array {_digest(array)} of shape {array.shape}"


def _digest(array: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]


def _checked(header: dict, tensors: dict[str, np.ndarray]) -> Saved:
    """The state in a file, or a ValueError if it does not fit the fit that the file itself names."""
    check(header, HEADER, "header")
    number, gamma, done = header["number"], header["gamma"], header["done"]
    if number < 0 or (gamma is not None and gamma <= 0):
        raise ValueError("the number of iterations or gamma is not positive")
    k, d = (header["problem"][f"number of {what}"] for what in ("clusters", "columns"))
    places, weights = tensors["places"], tensors.get("weights")
    shapes = [(places, (k, d))] + ([] if weights is None else [(weights, (k,))])
    for array, shape in shapes:
        if array.shape != shape or array.dtype not in (np.float32, np.float64) or not np.isfinite(array).all():
            raise ValueError(f"its centres are not {k} rows of {d} finite numbers")
    if weights is not None and not (weights >= 0).all():
        raise ValueError("its mixing weights are negative")
    return Saved(number, places, weights, gamma, done)


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
        rows, algorithm, parameters (but for ``max_iter`` and those that say where to compute), random state and
        version; otherwise a ValueError is raised. If False, an existing file is overwritten.

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
