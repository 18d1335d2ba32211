"""A real cluster for tests: a scheduler and workers as processes of their own, on loopback or in network namespaces."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import coterie
import tests

SETTINGS = {
    "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "8 s",  # loading compiled code holds a worker up
    "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "10",
    "DASK_DISTRIBUTED__WORKER__DAEMON": "False",
    "OMP_NUM_THREADS": "1",
    # the package that the tests import, wherever it is, and the tests themselves
    "PYTHONPATH": os.pathsep.join(str(Path(file).parent.parent) for file in (coterie.__file__, tests.__file__)),
}
SLOW_START = 120  # seconds in which a worker has connected, on a busy machine too


class Cluster:
    """Starts and ends processes; knows nothing of what they compute."""

    def __init__(self, folder: Path, host: str = "127.0.0.1", prefix: tuple[str, ...] = (), protocol: str = "tcp"):
        self.folder, self.host, self.prefix, self.protocol = folder, host, prefix, protocol
        self.port = _free_port() if host == "127.0.0.1" else 8786
        self.processes: list[subprocess.Popen] = []
        self.scheduler = self.start_scheduler()

    @property
    def address(self) -> str:
        return f"{self.protocol}://{self.host}:{self.port}"

    def start_scheduler(self) -> subprocess.Popen:
        where = ["--host", self.host, "--port", str(self.port), "--no-dashboard", "--protocol", self.protocol]
        self.scheduler = self._start("distributed.cli.dask_scheduler", *where, prefix=self.prefix)
        return self.scheduler

    def start_worker(self, name: str, host: str | None = None, prefix: tuple[str, ...] | None = None):
        where = ["--host", host or self.host, "--protocol", self.protocol]
        options = [self.address, "--name", name, *where, "--nthreads", "1", "--no-nanny"]
        more = ["--no-dashboard", "--memory-limit", "1GB", "--local-directory", str(self.folder)]
        return self._start(
            "distributed.cli.dask_worker", *options, *more, prefix=self.prefix if prefix is None else prefix
        )

    def _start(self, module: str, *options: str, prefix: tuple[str, ...]) -> subprocess.Popen:
        log = open(self.folder / f"{module}-{len(self.processes)}.log", "wb")  # noqa: SIM115
        command = [*prefix, sys.executable, "-m", module, *options]
        process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **SETTINGS}, cwd=self.folder)
        log.close()
        self.processes.append(process)
        return process

    def close(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.wait()


def slow_block(number: int, seconds: float = 0.02) -> np.ndarray:
    """Rows made where they are wanted, after a while: the same on every worker and in every attempt."""
    time.sleep(seconds)
    rng = np.random.default_rng(number)
    middles = 4 * np.random.default_rng(0).normal(size=(8, 4))
    return (middles[rng.integers(0, 8, 500)] + rng.normal(size=(500, 4))).astype("float32")


def slow_array(n_blocks: int, seconds: float = 0.02):
    import dask
    import dask.array as da

    blocks = [dask.delayed(slow_block)(number, seconds) for number in range(n_blocks)]
    return da.concatenate([da.from_delayed(block, (500, 4), "float32") for block in blocks])


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
