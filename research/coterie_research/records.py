"""The JSON records of experiments: one header, one way to write them, and curves with fitted slopes.

A curve is ``{"label", "x", "y", "slope"}``: ``slope`` is that of the least-squares line through the logarithms.
"""

import json
import math
import platform
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

import coterie
from coterie.files import replacing

ROUNDING = 1e-12
settings: dict[str, str] = {}  # of the command that runs: its options --set


def command(name: str, quick: bool) -> str:
    """The command that is running, as a record names it."""
    words = ["coterie reproduce", name, *(f"--set {key}={value}" for key, value in settings.items())]
    return " ".join([*words, *["--quick"] * quick])


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
    compact = json.dumps(record)
    path = output / f"{file or name.rpartition('/')[2]}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        temporary.write_text((json.dumps(record, indent=1) if len(compact) < 100_000 else compact) + "\n")
    return record


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
