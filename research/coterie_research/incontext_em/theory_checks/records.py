"""What all of these experiments share: curves with fitted slopes, records on disk, and the instances.

A curve is ``{"label", "x", "y", "slope"}``: ``slope`` is that of the least-squares line through the logarithms.
"""

import json
import math
import platform
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import coterie
from coterie_research.incontext_em.theory import lloyd
from coterie_research.incontext_em.theory_checks import pictures

ROUNDING = 1e-12


def slope(x: Sequence[float], y: Sequence[float], floor: float = ROUNDING) -> float | None:
    """Of the line through (log x, log y), where y is above ``floor``; None if any y is 0 or fewer than 3 are left."""
    kept = np.array([(math.log(a), math.log(b)) for a, b in zip(x, y) if b > floor])
    return None if len(kept) < 3 or min(y) == 0 else round(float(np.polyfit(kept[:, 0], kept[:, 1], 1)[0]), 3)


def curve(label: str, x: Sequence[float], y: Sequence[float], floor: float = ROUNDING, **more: Any) -> dict[str, Any]:
    y = [float(value) for value in y]
    return {"label": label, "x": list(x), "y": y, "slope": slope(x, y, floor), **more}


def save(record: dict[str, Any], name: str, output: Path, quick: bool, began: float) -> dict:
    head = {
        "command": f"coterie reproduce theory/{name}" + (" --quick" if quick else ""),
        "seconds": round(time.perf_counter() - began, 1),
        "versions": {"python": platform.python_version(), "torch": torch.__version__, "coterie": coterie.__version__},
    }
    output.mkdir(parents=True, exist_ok=True)
    record = head | record
    (output / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")
    pictures.DRAW[name](record, output / f"{name}.png")
    return record


def mixture(n: int, seed: int, d: int = 2, k: int = 3, shift: float = 5.0) -> tuple[Tensor, Tensor]:
    """n points around k centres from N(shift, 9 I), noise N(0, I), and k of the points to start from.

    The clusters' sizes are as n / k as can be. ``shift`` moves the mixture away from the origin; for 0 the centres add
    up to zero, so that the mixture's mean is zero and the sample's is not.
    """
    g = torch.Generator().manual_seed(seed)
    centers = 3 * torch.randn(k, d, dtype=torch.float64, generator=g)
    centers = centers + shift if shift else centers - centers.mean(0)
    x = centers[torch.arange(n) % k] + torch.randn(n, d, dtype=torch.float64, generator=g)
    x = x[torch.randperm(n, generator=g)]
    return x, x[torch.randperm(n, generator=g)[:k]]


def instances(count: int, n: int = 200, d: int = 2, k: int = 3, tau: int = 5) -> Iterator[tuple[int, Tensor, Tensor]]:
    """(seed, points, start) of the first ``count`` seeds for which Algorithm 1 is defined: no cluster gets empty."""
    seed = -1
    while count:
        seed += 1
        x, start = mixture(n, seed, d, k)
        try:
            lloyd(x, start, tau)
        except ValueError:
            continue
        count -= 1
        yield seed, x, start


def geometric(values: Sequence[float]) -> float:
    return math.exp(sum(math.log(max(value, 1e-300)) for value in values) / len(values))
