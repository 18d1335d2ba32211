"""Of all tests, those of the library and those of the research package."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

# Some tests ask for two threads. Those of OpenMP wait in a loop, which takes seconds beside other processes.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")


def pytest_configure(config):
    """Compile kernels once, if none are compiled yet and if several processes are to run the tests."""
    package = Path(importlib.util.find_spec("coterie").origin).parent
    cache = Path(os.environ.get("NUMBA_CACHE_DIR", package))
    if getattr(config.option, "numprocesses", None) and not any(cache.rglob("*.nbi")):
        subprocess.run([sys.executable, "-m", "coterie", "warmup"], check=True)
