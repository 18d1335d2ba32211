"""Kill twenty workers at random moments of fits on a cluster of processes, and check that no bit of the result changes.

Command: ``coterie bench kills``.
"""

import json
import random
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from coterie.distributed.blocks import blocks_of
from coterie.distributed.fitting import fit
from coterie.distributed.passes import local
from coterie.files import replacing
from coterie.kmeans.algorithm import Algorithm
from coterie.kmeans.iteration import Result

D, K, BLOCKS, BLOCK_ROWS = 8, 32, 24, 20_000
WORKERS = 2


def run(quick: bool = False, output: Path = Path("results/scale")) -> dict:
    """Kill 20 workers (2 with ``quick``), over as many fits as necessary."""
    import dask

    import distributed

    wanted = 2 if quick else 20
    began = time.perf_counter()
    with dask.config.set({"distributed.scheduler.allowed-failures": 100}):
        with dask.config.set(scheduler="synchronous"):
            undisturbed = _fit()
        fits: list[dict] = []
        with local(0) as cluster, distributed.Client(cluster), _Killer(wanted, cluster.scheduler) as killer:
            while killer.busy or not fits:
                before = killer.kills
                ran = _fit()
                fits.append({"kills": killer.kills - before, "same": _same(ran, undisturbed)})
    result = {
        "command": "coterie bench kills" + (" --quick" if quick else ""),
        "kills": killer.kills,
        "fits": fits,
        "all_same": all(one["same"] for one in fits),
        "seconds": time.perf_counter() - began,
    }
    output = Path(output)
    output.mkdir(parents=True, exist_ok=True)
    with replacing(output / "kills.json") as file:
        file.write_text(json.dumps(result, indent=1))
    return result


class _Killer:
    """Keeps workers running as separate processes, and kills one at a random moment whenever all are connected."""

    def __init__(self, wanted: int, scheduler: Any):
        self.wanted, self.kills, self.scheduler = wanted, 0, scheduler
        self.random = random.Random(0)
        self.workers: list[subprocess.Popen] = []
        self.thread = threading.Thread(target=self._work, daemon=True)

    @property
    def busy(self) -> bool:
        return self.thread.is_alive()

    def __enter__(self) -> "_Killer":
        self._replace_dead()
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.wanted = 0
        self.thread.join()
        for worker in self.workers:
            worker.kill()
            worker.wait()

    def _work(self) -> None:
        while self.kills < self.wanted:
            if len(self.scheduler.workers) == WORKERS:
                time.sleep(self.random.uniform(0.0, 1.0))
                victim = self.random.choice(self.workers)
                victim.kill()
                victim.wait()
                self.kills += 1
            self._replace_dead()
            time.sleep(0.2)

    def _replace_dead(self) -> None:
        self.workers = [worker for worker in self.workers if worker.poll() is None]
        options = ["--no-nanny", "--nthreads", "1", "--no-dashboard"]
        command = [sys.executable, "-m", "distributed.cli.dask_worker", self.scheduler.address, *options]
        while len(self.workers) < WORKERS:
            self.workers.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))


def _make_block(number: int) -> np.ndarray:
    rng = np.random.default_rng([2, number])
    middles = 3 * np.random.default_rng(0).normal(size=(K, D))
    return (middles[rng.integers(0, K, BLOCK_ROWS)] + rng.standard_normal((BLOCK_ROWS, D))).astype("float32")


def _fit() -> Result:
    import dask
    import dask.array as da

    parts = [da.from_delayed(dask.delayed(_make_block)(b), (BLOCK_ROWS, D), "float32") for b in range(BLOCKS)]
    blocks, start = blocks_of(da.concatenate(parts)), _make_block(0)[:K]
    return fit(blocks, Algorithm(), K, start, np.random.RandomState(0), max_iter=20, tol=0.0)


def _same(one: Result, other: Result) -> bool:
    return bool(np.array_equal(one.centers, other.centers)) and one.inertia == other.inertia


def markdown(result: dict) -> str:
    verdict = "the result never changed" if result["all_same"] else "THE RESULT CHANGED"
    return (
        f"`{result['command']}`: {result['kills']} workers were killed in {len(result['fits'])} fits; {verdict} "
        f"({result['seconds']:.0f} s)."
    )
