"""Ten pages of the studio at once: how long they wait for interactive answers while two long runs compute."""

import os
import random
import threading
import time
from functools import partial

import numpy as np

from coterie_research.benchmarks.harness import Benchmark, Cell, Row, table
from coterie_research.stress.processes import Client, csv_table, studio

TABS, LONG_RUNS = 10, 2
ROWS, LONG_ROWS = 20_000, 200_000
PAUSE = 0.5, 1.5  # seconds between the requests of a page


def measure(minutes: float) -> list[Row]:
    with studio() as client:
        draw = random.Random(0)
        opened = client.ask("POST", "/api/tables?name=tabs.csv", csv_table(draw, ROWS))
        shown = client.start(opened, "kmeans")
        client.finished(shown)
        large = client.ask("POST", "/api/tables?name=long.csv", csv_table(draw, LONG_ROWS))
        long = [client.start(large, "vae") for _ in range(LONG_RUNS)]
        waited: dict[str, list[float]] = {}
        end = time.monotonic() + 60 * minutes
        pages = [threading.Thread(target=_page, args=(client, shown, end, seed, waited)) for seed in range(TABS)]
        for page in pages:
            page.start()
        for page in pages:
            page.join()
        states = [client.ask("GET", f"/api/runs/{identity}")["state"] for identity in long]
    answers = {"all": [second for seconds in waited.values() for second in seconds], **waited}
    return [
        {"answer": name, "n": len(seconds), "long_runs": states, "most": max(seconds)}
        | {f"p{share}": float(np.percentile(seconds, share)) for share in (50, 95, 99)}
        for name, seconds in answers.items()
    ]


def _page(client: Client, run: str, end: float, seed: int, waited: dict[str, list[float]]) -> None:
    """What somebody does who looks at a run: hover, click, change axes, name clusters, download labels."""
    draw = random.Random(seed)
    requests = {
        "state of the studio": partial(client.ask, "GET", "/api/state"),
        "rows of a cluster": partial(client.ask, "GET", f"/api/runs/{run}/clusters/1"),
        "map": partial(client.ask, "GET", f"/api/runs/{run}/map"),
        "other axes": partial(client.ask, "GET", f"/api/runs/{run}/axes?x=a&y=c"),
        "names": partial(client.ask, "POST", f"/api/runs/{run}/names", {"names": {"0": f"page {seed}"}}),
        "labels": partial(client.labels, run),
    }
    while time.monotonic() < end:
        name = draw.choice(list(requests))
        began = time.monotonic()
        requests[name]()
        waited.setdefault(name, []).append(time.monotonic() - began)
        time.sleep(draw.uniform(*PAUSE))


def page(record: Row) -> list[str]:
    lines = (
        [row["answer"], row["n"], *(f"{row[key]:.3f}" for key in ("p50", "p95", "p99", "most"))]
        for row in record["rows"]
    )
    return list(table(["seconds until an answer", "n", "median", "95 %", "99 %", "longest"], lines))


BENCHMARK = Benchmark(
    name="tabs",
    title="Ten pages of the studio beside two long runs",
    folder="soak",
    readme=False,
    needs=("psutil", "starlette"),
    cells=lambda quick: [
        Cell("ten pages", partial(measure, 0.2 if quick else float(os.environ.get("COTERIE_SOAK_MINUTES", "10"))))
    ],
    page=page,
)
