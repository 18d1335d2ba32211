"""Load and kills for a long time: a studio and a cluster of two workers, with figures for memory, handles and latency.

A client uploads tables, starts runs, stops some of them, and fetches results, while
workers of the studio are killed at random moments. At the same time, fits run on a cluster whose workers are killed. A
result is lost if a run that was neither killed nor stopped does not end in labels for all rows, if a request fails, or
if a fit on the cluster does not give the bits of an undisturbed one.
"""

import os
import random
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import psutil

from coterie_research.benchmarks.harness import Benchmark, Cell, Row, table
from coterie_research.stress.interruptions import fits_with_kills
from coterie_research.stress.processes import Client, csv_table, studio, usage

MINUTES = "COTERIE_SOAK_MINUTES", "30"  # another number may be set
KILL_SHARE = 0.15  # of the runs in the studio
ROWS = 2_000
ALGORITHMS = ("kmeans", "trimmed", "soft", "robust")


def measure(minutes: float) -> Row:
    began = time.monotonic()
    end = began + 60 * minutes
    with studio() as client, ThreadPoolExecutor(1) as other:
        requests = other.submit(_soak, client, end, random.Random(0))
        fits = _fits(end)  # in this thread, because its memory is measured
        counted = requests.result()
        counted["processes_left"] = len(client.process.children(recursive=True))
    return {"minutes": (time.monotonic() - began) / 60, **counted, "cluster": fits}


def _soak(client: Client, end: float, draw: random.Random) -> Row:
    latency: dict[str, list[float]] = {"upload": [], "run": [], "labels": [], "state": []}
    used: list[tuple[int, int]] = []
    count = dict.fromkeys(("done", "killed", "stopped", "lost"), 0)
    errors: list[str] = []
    while time.monotonic() < end:
        try:
            for name in _one_table(client, draw, latency):
                count[name] += 1
        except (RuntimeError, OSError) as error:
            count["lost"] += 1
            errors.append(f"{type(error).__name__}: {error}"[:300])
        used.append(client.usage())
    return {
        **{f"runs_{name}": number for name, number in count.items() if name != "lost"},
        "lost": count["lost"],
        "errors": errors[:20],
        **_summary(used),
        "seconds": {
            name: {"n": len(values), **{f"p{share}": float(np.percentile(values, share)) for share in (50, 90, 99)}}
            for name, values in latency.items()
            if values
        },
    }


def _one_table(client: Client, draw: random.Random, latency: dict[str, list[float]]) -> list[str]:
    """Upload a table, run an algorithm, fetch its labels, close the table. What is to be counted."""

    def timed(name: str, call: Callable[..., Any], *arguments: Any) -> Any:
        began = time.monotonic()
        answer = call(*arguments)
        latency[name].append(time.monotonic() - began)
        return answer

    opened = timed("upload", client.ask, "POST", "/api/tables?name=soak.csv", csv_table(draw, ROWS))
    began, identity = time.monotonic(), client.start(opened, draw.choice(ALGORITHMS))
    fate, counted = draw.random(), []
    if fate < KILL_SHARE:
        counted += ["killed"] * client.kill_a_worker(draw)
    elif fate < 2 * KILL_SHARE:
        client.ask("POST", f"/api/runs/{identity}/stop", {})
        counted.append("stopped")
    found = client.finished(identity)
    latency["run"].append(time.monotonic() - began)
    if found["state"] == "done":
        whole = len(timed("labels", client.labels, identity).splitlines()) == ROWS + 1
        counted += ["done", *["lost"] * (not whole)]
    elif not counted:
        counted.append("lost")
    timed("state", client.ask, "GET", "/api/state")
    client.ask("DELETE", f"/api/tables/{opened['id']}", None, raw=True)
    return counted


def _fits(end: float) -> Row:
    """Fits on a cluster whose workers are killed, with the memory and handles of the process that fits."""
    used: list[tuple[int, int]] = []
    found = fits_with_kills("worker", lambda _: time.monotonic() > end, lambda: used.append(usage(psutil.Process())))
    return {"kills": found["kills"], "fits": found["ended"], "lost": found["damaged"], **_summary(used)}


def _summary(used: Sequence[tuple[int, int]]) -> dict[str, dict[str, int]]:
    memory, handles = (list(column) for column in zip(*used))
    named = {"memory_mb": memory, "handles": handles}
    return {name: {"first": one[0], "last": one[-1], "most": max(one)} for name, one in named.items()}


def page(record: Row) -> list[str]:
    cluster = record["cluster"]
    used = [
        [name, *(f"{one['first']} → {one['last']} ({one['most']})" for one in (of["memory_mb"], of["handles"]))]
        for name, of in (("server of the studio", record), ("process that fits on the cluster", cluster))
    ]
    seconds = (
        [name, one["n"], *(f"{one[key]:.4f}" for key in ("p50", "p90", "p99"))]
        for name, one in record["seconds"].items()
    )
    return [
        f"{record['minutes']:.1f} minutes. Studio: {record['runs_done']} runs done, {record['runs_killed']} workers "
        f"killed, {record['runs_stopped']} runs stopped, **{record['lost']} results lost**. Cluster: "
        f"{cluster['fits']} fits, {cluster['kills']} workers killed, **{cluster['lost']} results changed**.",
        "",
        *table(["process", "memory first → last (most), MB", "handles first → last (most)"], used),
        "",
        *table(["seconds", "n", "median", "90 %", "99 %"], seconds),
    ]


BENCHMARK = Benchmark(
    name="soak",
    title="A studio and a cluster under load for a long time",
    readme=False,
    rows=None,
    needs=("psutil", "dask", "distributed", "starlette"),
    cells=lambda quick: [
        Cell("studio and cluster", partial(measure, 1 / 3 if quick else float(os.environ.get(*MINUTES))))
    ],
    summary=lambda rows: rows[0],
    page=page,
)
