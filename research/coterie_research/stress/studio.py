"""A studio in a process of its own, and a client of it: for the programs that kill its workers."""

import contextlib
import http.client
import json
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import psutil

SECONDS_TO_END = 30


def csv_table(draw: random.Random, rows: int) -> bytes:
    """A CSV file of three clusters in four columns."""
    rng = np.random.default_rng(draw.getrandbits(32))
    values = rng.normal(size=(rows, 4)) + 8 * rng.integers(0, 3, (rows, 1))
    return b"a,b,c,d\n" + "\n".join(",".join(f"{value:.5f}" for value in row) for row in values).encode()


@contextlib.contextmanager
def studio() -> Iterator["Client"]:
    """Start a studio, and stop it as Ctrl+C does."""
    command = [sys.executable, "-c", "from coterie.cli import main; main()", "studio", "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        lines = [process.stdout.readline() for _ in range(3)]
        found = re.search(r":(\d+)/#token=([\w-]+)$", lines[2].strip())
        if found is None:
            raise RuntimeError(f"The studio did not start: {lines}")
        yield Client(process, int(found[1]), found[2])
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


class Client:
    """Sends one request after the other."""

    def __init__(self, process: subprocess.Popen, port: int, token: str):
        self.process, self.port, self.token = psutil.Process(process.pid), port, token

    def ask(self, method: str, path: str, body: Any = None, *, raw: bool = False) -> Any:
        content = json.dumps(body).encode() if isinstance(body, dict) else body
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            connection.request(method, path, content, {"Authorization": f"Bearer {self.token}"})
            answer = connection.getresponse()
            text = answer.read()
            if answer.status >= 400:
                raise RuntimeError(f"{method} {path}: {answer.status} {text[:200]!r}")
            return text if raw else json.loads(text)
        finally:
            connection.close()

    def timed(self, seconds: list[float], method: str, path: str, body: Any = None, *, raw: bool = False) -> Any:
        began = time.monotonic()
        answer = self.ask(method, path, body, raw=raw)
        seconds.append(time.monotonic() - began)
        return answer

    def start(self, opened: dict[str, Any], algorithm: str, clusters: int = 3) -> str:
        """Start a run on all numbers of an uploaded table; its identity."""
        columns = [column["name"] for column in opened["columns"] if column["kind"] == "number"]
        wanted = {"table": opened["id"], "columns": columns, "algorithm": algorithm, "clusters": clusters}
        return self.ask("POST", "/api/runs", wanted)["id"]

    def finished(self, identity: str) -> dict[str, Any]:
        self.ask("GET", f"/api/runs/{identity}/events", raw=True)  # until the run has ended
        return self.ask("GET", f"/api/runs/{identity}")

    def kill_a_worker(self, draw: random.Random, longest: float = 0.5) -> int:
        """Kill one of the workers after at most ``longest`` seconds; the number of killed processes."""
        time.sleep(draw.uniform(0.0, longest))
        workers = self.process.children()
        if workers:
            with contextlib.suppress(psutil.NoSuchProcess):
                draw.choice(workers).kill()
                return 1
        return 0

    def processes(self) -> int:
        return len(self.process.children(recursive=True))

    def usage(self) -> tuple[int, int]:
        return usage(self.process)


def usage(process: psutil.Process) -> tuple[int, int]:
    """Resident megabytes and open handles of a process itself."""
    return process.memory_info().rss // 2**20, process.num_fds()
