"""The JSON records of experiments: one header, one way to write them, and curves with fitted slopes.

A curve is ``{"label", "x", "y", "slope"}``: ``slope`` is that of the least-squares line through the logarithms.
"""

import json
import math
import platform
import sys
import time
from collections.abc import Callable, Sequence
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import torch

import coterie
from coterie.files import replacing
from coterie_research import drawing

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROUNDING = 1e-12
settings: dict[str, str] = {}  # of the command that runs: its options --set
EXPERIMENTS: dict[str, Callable[..., dict[str, Any]]] = {}  # PAPER/NAME -> what runs, of all modules that are imported


def command(name: str, quick: bool) -> str:
    """The command that is running, as a record names it."""
    words = ["coterie reproduce", name, *(f"--set {key}={value}" for key, value in settings.items())]
    return " ".join([*words, *["--quick"] * quick])


def read_toml(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text())


def versions() -> dict[str, str]:
    found = {"python": platform.python_version(), "numpy": np.__version__, "torch": torch.__version__}
    return {**found, "coterie": coterie.__version__}


def save(
    record: dict[str, Any], name: str, output: Path, quick: bool, *, file: str | None = None, **head: Any
) -> dict[str, Any]:
    """Write ``record`` as JSON to ``output``, after the command of the experiment ``name``, ``head`` and the versions.

    The file has the experiment's own name unless ``file`` names another. The result is what was written.
    """
    record = {"command": command(name, quick), **head, "versions": versions(), **record}
    write(record, output / f"{file or name.rpartition('/')[2]}.json")
    return record


def write(record: dict[str, Any], path: Path) -> None:
    compact = json.dumps(record)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        temporary.write_text((json.dumps(record, indent=1) if len(compact) < 100_000 else compact) + "\n")


def experiment(
    name: str,
    draw: Callable[[dict[str, Any]], drawing.Picture] | None = None,
    *,
    page: Callable[[dict[str, Any]], list[str]] | None = None,
    file: str = "",
    **head: Any,
) -> Callable[[Callable[..., dict[str, Any]]], Callable[..., dict[str, Any]]]:
    """Make an experiment, a function of ``output``, ``quick`` and settings, of one that measures, and register it.

    ``measure(quick, ...)``, or ``measure(output, quick, ...)``, returns what is measured. Command, ``head`` (functions
    in it are called), CPU seconds and versions are added, and the record is written to ``file``, by default the
    experiment's own name. Its picture, and the lines of a page in Markdown, are made from the record alone.
    """
    file = file or name.rpartition("/")[2]

    def made(measure: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
        told = "output" in signature(measure).parameters

        @wraps(measure)
        def run(output: Path, quick: bool = False, **changes: Any) -> dict[str, Any]:
            began = time.process_time()
            record = measure(*[output] * told, quick, **changes)
            known = {key: value() if callable(value) else value for key, value in head.items()}
            record = save(record, name, output, quick, file=file, **known, cpu_seconds=spent(began))
            if draw is not None:
                drawing.draw(draw(record), output / f"{file}.png")
            if page is not None:
                (output / f"{file}.md").write_text("\n".join(page(record)) + "\n")
            return record

        EXPERIMENTS[name] = run
        return run

    return made


def spent(began: float) -> float:
    """CPU seconds of this process since ``began``, a reading of ``time.process_time``."""
    return round(time.process_time() - began, 1)


def slope(x: Sequence[float], y: Sequence[float], floor: float = ROUNDING) -> float | None:
    """Of the line through (log x, log y), where y is above ``floor``; None if any y is 0 or fewer than 3 are left."""
    kept = np.array([(math.log(a), math.log(b)) for a, b in zip(x, y) if b > floor])
    return None if len(kept) < 3 or min(y) == 0 else round(float(np.polyfit(kept[:, 0], kept[:, 1], 1)[0]), 3)


def curve(label: str, x: Sequence[float], y: Sequence[float], floor: float = ROUNDING, **more: Any) -> dict[str, Any]:
    y = [float(value) for value in y]
    return {"label": label, "x": list(x), "y": y, "slope": slope(x, y, floor), **more}
