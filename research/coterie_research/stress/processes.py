"""How stress programs start and kill processes: commands, a cluster of Dask, and a studio with its client."""

import contextlib
import http.client
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

COTERIE = [sys.executable, "-c", "from coterie.cli import main; main()"]
WORKERS = 2
SECONDS_TO_END = 30


def started(*command: str, **environment: str) -> subprocess.Popen:
    """A process that prints nothing."""
    nowhere = subprocess.DEVNULL
    return subprocess.Popen(command, stdout=nowhere, stderr=nowhere, env={**os.environ, **environment})


def kill(*processes: subprocess.Popen) -> None:
    for process in processes:
        process.kill()
        process.wait()


class Cluster:
    """A scheduler and two workers as processes of their own; what died is started again at the same address."""

    def __init__(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{self.port}"
        self.scheduler: subprocess.Popen | None = None
        self.workers: list[subprocess.Popen] = []
        self.start_missing()

    def start_missing(self) -> None:
        command = [sys.executable, "-m", "distributed.cli.dask_{}", "--host", "127.0.0.1", "--no-dashboard"]

        def begin(role: str, *options: str) -> subprocess.Popen:
            words = [word.format(role) for word in command]
            return started(*words, *options, DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES="100")

        if self.scheduler is None or self.scheduler.poll() is not None:
            self.scheduler = begin("scheduler", "--port", str(self.port))
        self.workers = [worker for worker in self.workers if worker.poll() is None]
        while len(self.workers) < WORKERS:
            self.workers.append(begin("worker", self.address, "--no-nanny", "--nthreads", "1"))

    def is_complete(self, client: Any) -> bool:
        """Whether the client is connected and the workers are those that were started last."""
        from distributed import TimeoutError as DaskTimeoutError  # in Python 3.10 not the one of Python

        with contextlib.suppress(OSError, RuntimeError, DaskTimeoutError):
            running = [worker for worker in self.workers if worker.poll() is None]
            return client.status == "running" and len(client.nthreads()) == len(running) == WORKERS
        return False

    def close(self) -> None:
        """Kill the scheduler, and its workers, which would wait for it for a while before they end."""
        kill(*filter(None, [self.scheduler]), *self.workers)


def csv_table(draw: random.Random, rows: int) -> bytes:
    """A CSV file of three clusters in four columns."""
    rng = np.random.default_rng(draw.getrandbits(32))
    values = rng.normal(size=(rows, 4)) + 8 * rng.integers(0, 3, (rows, 1))
    return b"a,b,c,d\n" + "\n".join(",".join(f"{value:.5f}" for value in row) for row in values).encode()


@contextlib.contextmanager
def studio() -> Iterator["Client"]:
    """Start a studio, and stop it as Ctrl+C does."""
    process = subprocess.Popen([*COTERIE, "studio", "--no-browser"], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        lines = [process.stdout.readline() for _ in range(3)]
        found = re.search(r":(\d+)/#token=([\w-]+)$", lines[2].strip())
        if found is None:
            raise RuntimeError(f"The studio did not start: {lines}")
        yield Client(process, int(found[1]), found[2])
    finally:
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(SECONDS_TO_END)
        kill(process)
        process.stdout.close()


class Client:
    """Sends a studio one request after the other."""

    def __init__(self, process: subprocess.Popen, port: int, token: str):
        import psutil

        self.process, self.port, self.token = psutil.Process(process.pid), port, token

    def ask(self, method: str, path: str, body: Any = None, *, raw: bool = False) -> Any:
        content = json.dumps(body).encode() if isinstance(body, dict) else body
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)) as connection:
            connection.request(method, path, content, {"Authorization": f"Bearer {self.token}"})
            answer = connection.getresponse()
            text = answer.read()
        if answer.status >= 400:
            raise RuntimeError(f"{method} {path}: {answer.status} {text[:200]!r}")
        return text if raw else json.loads(text)

    def start(self, opened: dict[str, Any], algorithm: str) -> str:
        """Start a run with three clusters on all numbers of an uploaded table; its identity."""
        columns = [column["name"] for column in opened["columns"] if column["kind"] == "number"]
        wanted = {"table": opened["id"], "columns": columns, "algorithm": algorithm, "clusters": 3}
        return self.ask("POST", "/api/runs", wanted)["id"]

    def finished(self, identity: str) -> dict[str, Any]:
        self.ask("GET", f"/api/runs/{identity}/events", raw=True)  # until the run has ended
        return self.ask("GET", f"/api/runs/{identity}")

    def labels(self, identity: str) -> bytes:
        return self.ask("GET", f"/api/runs/{identity}/files/labels.csv", raw=True)

    def kill_a_worker(self, draw: random.Random, longest: float = 0.5) -> int:
        """Kill one of the workers after at most ``longest`` seconds; the number of killed processes."""
        import psutil

        time.sleep(draw.uniform(0.0, longest))
        with contextlib.suppress(psutil.NoSuchProcess, IndexError):  # random.choice of no worker
            draw.choice(self.process.children()).kill()
            return 1
        return 0

    def usage(self) -> tuple[int, int]:
        return usage(self.process)


def usage(process: Any) -> tuple[int, int]:
    """Resident megabytes and open handles of a process itself."""
    return process.memory_info().rss // 2**20, process.num_fds()
