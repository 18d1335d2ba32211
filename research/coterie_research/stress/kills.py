"""Kill processes of a cluster at random moments of fits, and check that no bit of the result changes.

This program kills twenty workers; ``coterie bench interruptions`` kills schedulers, too.
"""

import contextlib
import os
import random
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from coterie import KMeans
from coterie.distributed.cluster import ClusterError
from coterie_research.benchmarks.harness import Benchmark, Cell, Row

D, K, BLOCKS, BLOCK_ROWS = 8, 32, 24, 20_000
WORKERS = 2
SETTINGS = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "100"}


def measure(wanted: int) -> Row:
    """Kill workers over as many fits as necessary."""
    found = fits_with_kills("worker", lambda kills: kills >= wanted)
    return {**found, "all_same": all(one["same"] for one in found["fits"])}


def fits_with_kills(
    victim: Literal["worker", "scheduler"],
    enough: Callable[[int], bool],
    after_fit: Callable[[], object] = lambda: None,
) -> Row:
    """Fit on a cluster of processes that are killed until ``enough(number of kills)``, and compare every result."""
    import dask

    import distributed

    with dask.config.set(scheduler="synchronous"):
        undisturbed = _fit()
    fits: list[dict] = []
    with contextlib.closing(_Cluster()) as cluster, distributed.Client(cluster.address, timeout=60) as client:
        for _ in range(2):  # the first one waits for the workers and for compiled code
            began = time.perf_counter()
            fits.append({"kills": 0, "same": _same(_fit(), undisturbed)})
            after_fit()
        killer = _Killer(cluster, client, victim, enough, longest=max(1.0, time.perf_counter() - began))
        with killer:
            while killer.busy:
                before = killer.kills
                same = False
                with contextlib.suppress(ClusterError):  # which counts as a result that is not the same
                    same = _same(_fit(), undisturbed)
                fits.append({"kills": killer.kills - before, "same": same})
                after_fit()
    return {"kills": killer.kills, "fits": fits}


class _Cluster:
    """A scheduler and two workers as processes of their own; what died is started again at the same address."""

    def __init__(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{self.port}"
        self.scheduler = self._start_scheduler()
        self.workers: list[subprocess.Popen] = []
        self.start_missing()

    def _start_scheduler(self) -> subprocess.Popen:
        return _started("distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", str(self.port))

    def start_missing(self) -> None:
        if self.scheduler.poll() is not None:
            self.scheduler = self._start_scheduler()
        self.workers = [worker for worker in self.workers if worker.poll() is None]
        while len(self.workers) < WORKERS:
            options = [self.address, "--host", "127.0.0.1", "--no-nanny", "--nthreads", "1"]
            self.workers.append(_started("distributed.cli.dask_worker", *options))

    def is_complete(self, client: Any) -> bool:
        """Whether the client is connected and the workers are those that were started last."""
        from distributed import TimeoutError as DaskTimeoutError  # in Python 3.10 not the one of Python

        with contextlib.suppress(OSError, RuntimeError, DaskTimeoutError):
            running = [worker for worker in self.workers if worker.poll() is None]
            return client.status == "running" and len(client.nthreads()) == len(running) == WORKERS
        return False

    def close(self) -> None:
        """Kill the scheduler, and its workers, which would wait for it for a while before they end."""
        for process in (self.scheduler, *self.workers):
            _kill(process)


def _kill(process: subprocess.Popen) -> None:
    process.kill()
    process.wait()


def _started(module: str, *options: str) -> subprocess.Popen:
    command = [sys.executable, "-m", module, *options, "--no-dashboard"]
    nowhere = subprocess.DEVNULL
    return subprocess.Popen(command, stdout=nowhere, stderr=nowhere, env={**os.environ, **SETTINGS})


class _Killer:
    """Keeps a cluster running, and kills one of its processes whenever it is complete, after up to ``longest`` seconds.

    These are the seconds of a whole fit: a pass that is disturbed five times in a row gives up.
    """

    def __init__(self, cluster: _Cluster, client: Any, victim: str, enough: Callable[[int], bool], longest: float):
        self.cluster, self.client, self.victim, self.enough = cluster, client, victim, enough
        self.longest = longest
        self.kills, self.random, self.ended = 0, random.Random(0), threading.Event()
        self.thread = threading.Thread(target=self._work, daemon=True)

    @property
    def busy(self) -> bool:
        return self.thread.is_alive()

    def __enter__(self) -> "_Killer":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.thread.join()

    def _work(self) -> None:
        while not self.ended.is_set() and not self.enough(self.kills):
            if self.cluster.is_complete(self.client):
                self.ended.wait(self.random.uniform(0.0, self.longest))
                if self.victim == "worker":
                    _kill(self.random.choice(self.cluster.workers))
                else:
                    self.cluster.close()
                self.kills += 1
            self.cluster.start_missing()
            time.sleep(0.2)


def _make_block(number: int) -> np.ndarray:
    rng = np.random.default_rng([2, number])
    middles = 3 * np.random.default_rng(0).normal(size=(K, D))
    return (middles[rng.integers(0, K, BLOCK_ROWS)] + rng.standard_normal((BLOCK_ROWS, D))).astype("float32")


def _fit() -> KMeans:
    import dask
    import dask.array as da

    parts = [da.from_delayed(dask.delayed(_make_block)(b), (BLOCK_ROWS, D), "float32") for b in range(BLOCKS)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return KMeans(K, init=_make_block(0)[:K], max_iter=20, tol=0.0).fit(da.concatenate(parts))


def _same(one: KMeans, other: KMeans) -> bool:
    return bool(np.array_equal(one.cluster_centers_, other.cluster_centers_)) and one.inertia_ == other.inertia_


BENCHMARK = Benchmark(
    name="kills",
    title="Fits on a cluster whose workers are killed",
    folder="scale",
    readme=False,
    rows=None,
    needs=("dask", "distributed"),
    cells=lambda quick: [Cell("workers", partial(measure, 2 if quick else 20))],
    summary=lambda rows: rows[0],
    outro="{kills} workers were killed. All results are those of an undisturbed fit: {all_same}.",
)
