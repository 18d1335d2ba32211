"""Load and kills for a long time: a studio and a cluster of two workers, with figures for memory, handles and latency.

Command: ``coterie bench soak``. Clients upload tables, start runs, stop some of them, and fetch results, while workers
of the studio and of the cluster are killed at random moments. A result is lost if a run that was not killed does not
end in labels for all rows, or if a fit on the cluster does not give the bits of an undisturbed one.
"""

import contextlib
import http.client
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from coterie.benchmarks import kills
from coterie.files import replacing

MINUTES = 30.0
KILL_SHARE = 0.15  # of the runs in the studio
ROWS = 2_000
ALGORITHMS = ("kmeans", "trimmed", "soft", "robust")


def run(quick: bool = False, output: Path = Path("results/soak")) -> dict[str, Any]:
    """Soak for half an hour (20 seconds with ``quick``). COTERIE_SOAK_MINUTES sets another time."""
    minutes = 1 / 3 if quick else float(os.environ.get("COTERIE_SOAK_MINUTES", MINUTES))
    began = time.monotonic()
    with _studio() as studio:
        client = _Client(studio)
        counted = _soak(client, began + 60 * minutes, random.Random(0))
        counted["left_behind"] = client.processes()
    counted["cluster"] = _cluster(quick)
    result = {
        "command": "coterie bench soak" + (" --quick" if quick else ""),
        "minutes": (time.monotonic() - began) / 60,
        **counted,
    }
    output = Path(output)
    output.mkdir(parents=True, exist_ok=True)
    with replacing(output / "soak.json") as file:
        file.write_text(json.dumps(result, indent=1))
    return result


def _soak(client: "_Client", end: float, draw: random.Random) -> dict[str, Any]:
    latency: dict[str, list[float]] = {"upload": [], "run": [], "labels": [], "state": []}
    usage: list[tuple[int, int]] = []
    done = killed = stopped = lost = 0
    while time.monotonic() < end:
        table = client.timed(latency["upload"], "POST", "/api/tables?name=soak.csv", _csv(draw))
        columns = [column["name"] for column in table["columns"] if column["kind"] == "number"]
        wanted = {"table": table["id"], "columns": columns, "algorithm": draw.choice(ALGORITHMS), "clusters": 3}
        began, started = time.monotonic(), client.ask("POST", "/api/runs", wanted)
        fate = draw.random()
        if fate < KILL_SHARE:
            killed += client.kill_a_worker(draw)
        elif fate < 2 * KILL_SHARE:
            client.ask("POST", f"/api/runs/{started['id']}/stop", {})
            stopped += 1
        found = client.finished(started["id"])
        latency["run"].append(time.monotonic() - began)
        if found["state"] == "done":
            labels = client.timed(latency["labels"], "GET", f"/api/runs/{started['id']}/files/labels.csv", raw=True)
            lost += len(labels.splitlines()) != ROWS + 1
            done += 1
        elif fate >= 2 * KILL_SHARE:
            lost += 1
        client.timed(latency["state"], "GET", "/api/state")
        client.ask("DELETE", f"/api/tables/{table['id']}", raw=True)
        usage.append(client.usage())
    memory, handles = (list(column) for column in zip(*usage))
    return {
        "runs_done": done,
        "runs_killed": killed,
        "runs_stopped": stopped,
        "lost": lost,
        "memory_mb": {"first": memory[0], "last": memory[-1], "most": max(memory)},
        "handles": {"first": handles[0], "last": handles[-1], "most": max(handles)},
        "seconds": {name: _percentiles(values) for name, values in latency.items() if values},
    }


def _percentiles(values: list[float]) -> dict[str, float]:
    return {f"p{share}": round(float(np.percentile(values, share)), 4) for share in (50, 90, 99)} | {"n": len(values)}


def _csv(draw: random.Random) -> bytes:
    rng = np.random.default_rng(draw.getrandbits(32))
    rows = rng.normal(size=(ROWS, 4)) + 8 * rng.integers(0, 3, (ROWS, 1))
    return b"a,b,c,d\n" + "\n".join(",".join(f"{value:.5f}" for value in row) for row in rows).encode()


def _cluster(quick: bool) -> dict[str, Any]:
    """Fits on a cluster whose workers are killed."""
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        found = kills.run(quick=quick, output=Path(folder))
    return {"kills": found["kills"], "fits": len(found["fits"]), "lost": sum(not one["same"] for one in found["fits"])}


@contextlib.contextmanager
def _studio() -> Iterator[tuple[subprocess.Popen, int, str]]:
    """A studio in a process of its own: the process, its port and its token."""
    command = [sys.executable, "-c", "from coterie.cli import main; main()", "studio", "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        lines = [process.stdout.readline() for _ in range(3)]
        found = re.search(r":(\d+)/#token=([\w-]+)$", lines[2].strip())
        if found is None:
            raise RuntimeError(f"The studio did not start: {lines}")
        yield process, int(found[1]), found[2]
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
        process.stdout.close()


class _Client:
    def __init__(self, studio: tuple[subprocess.Popen, int, str]):
        process, self.port, self.token = studio
        self.process = psutil.Process(process.pid)

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

    def finished(self, identity: str) -> dict[str, Any]:
        self.ask("GET", f"/api/runs/{identity}/events", raw=True)  # until the run has ended
        return self.ask("GET", f"/api/runs/{identity}")

    def kill_a_worker(self, draw: random.Random) -> int:
        time.sleep(draw.uniform(0.0, 0.5))
        workers = self.process.children()
        if workers:
            with contextlib.suppress(psutil.NoSuchProcess):
                draw.choice(workers).kill()
        return int(bool(workers))

    def processes(self) -> int:
        return len(self.process.children(recursive=True))

    def usage(self) -> tuple[int, int]:
        """Resident megabytes and open handles of the server itself."""
        return self.process.memory_info().rss // 2**20, self.process.num_fds()


def markdown(result: dict[str, Any]) -> str:
    seconds = result["seconds"]
    rows = [f"| {name} | {one['n']} | {one['p50']} | {one['p90']} | {one['p99']} |" for name, one in seconds.items()]
    memory, handles, cluster = result["memory_mb"], result["handles"], result["cluster"]
    return "\n".join(
        [
            f"`{result['command']}`: {result['minutes']:.1f} minutes, {result['runs_done']} runs done, "
            f"{result['runs_killed']} workers killed, {result['runs_stopped']} runs stopped, "
            f"**{result['lost']} results lost**.",
            "",
            f"Server: memory {memory['first']} → {memory['last']} MB (at most {memory['most']}), handles "
            f"{handles['first']} → {handles['last']} (at most {handles['most']}).",
            f"Cluster: {cluster['kills']} workers killed in {cluster['fits']} fits, {cluster['lost']} results changed.",
            "",
            "| seconds | n | median | 90 % | 99 % |",
            "|---|---|---|---|---|",
            *rows,
        ]
    )
