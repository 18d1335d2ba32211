"""Matrix products in bfloat16 on processors that only claim to have instructions for them.

Some virtual machines report the matrix instructions of the processor (AMX) and allow a process to use them, but every
use ends the process with "illegal instruction". oneDNN, with which torch multiplies such matrices, cannot know. So a
small product is tried in a process of its own, once, and only where AMX is reported. If that process does not survive,
torch multiplies without oneDNN.
"""

import functools
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PROCESSORS = Path("/proc/cpuinfo")
TRIAL = "import torch; a = torch.ones(64, 64, dtype=torch.bfloat16); a @ a"


@contextmanager
def products() -> Iterator[None]:
    """A block in which torch may multiply matrices of bfloat16 on the CPU."""
    import torch

    one_dnn: Any = torch.backends.mkldnn
    before = one_dnn.enabled
    one_dnn.enabled = before and (not reports_amx() or survives_trial())
    try:
        yield
    finally:
        one_dnn.enabled = before


def reports_amx() -> bool:
    return PROCESSORS.exists() and " amx_bf16" in PROCESSORS.read_text()


@functools.cache
def survives_trial() -> bool:
    return subprocess.run([sys.executable, "-c", TRIAL], capture_output=True, check=False).returncode == 0  # noqa: S603
