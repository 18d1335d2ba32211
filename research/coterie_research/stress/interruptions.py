"""Kill commands and fits at random moments, and check that nothing is half-written and that resumed bits are equal.

Seven programs are killed again and again. The first three by SIGKILL and
SIGTERM, half of the time while they write a file, the others by SIGKILL. SIGTERM must leave no temporary file:

* ``coterie cluster`` with ``--output``, ``--save`` and ``--report``: each file is the new one or absent.
* ``coterie train``, which is resumed until it ends: the weights are those of an undisturbed run, bit for bit.
* A fit on Dask data inside ``coterie.distributed.checkpoint``, which is resumed: the centres are those of one run.
* Workers and schedulers of a cluster, which are started again: the result of every fit, of k-means or, with workers
  that are killed, of a mixture, is that of an undisturbed one.
* Workers of the studio: a run ends with all labels or with an error, and the same run without a kill gives the same
  labels.
"""

import contextlib
import json
import random
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from coterie import FlowMixture, KMeans
from coterie.distributed.cluster import ClusterError
from coterie.tables.table import SAMPLES
from coterie_research.benchmarks.harness import Benchmark, Cell, Row
from coterie_research.stress.processes import COTERIE, Cluster, csv_table, kill, started, studio

KILLS = 17  # of each program: more than 100 in all
ROWS = 5_000  # of the table in the studio
Victim = Literal["worker", "scheduler"]
FOUND = ("cluster_centers_", "inertia_", "covariances_", "weights_")
D, K, BLOCKS, BLOCK_ROWS = 8, 32, 24, 20_000  # of the data on the cluster
TRAINING = {"model": {"n_layers": 2}, "training": {"steps": 60, "log_every": 10, "checkpoint_every": 5}}
FIT = """
import sys, dask, dask.array as da, numpy as np
from coterie import KMeans, distributed
X = da.from_array(np.random.RandomState(0).randn(60_000, 8), chunks=(10_000, 8))
with dask.config.set(scheduler="synchronous"), distributed.checkpoint(sys.argv[1] + "/centres", resume=True):
    model = KMeans(24, tol=0, max_iter=60, random_state=0).fit(X)
np.save(sys.argv[1] + "/result.npy", model.cluster_centers_)
"""


def _kmeans() -> KMeans:
    return KMeans(K, init=_make_block(0)[:K], max_iter=20, tol=0.0)


def _mixture() -> FlowMixture:
    return FlowMixture(covariance_type="diag", max_iter=10, random_state=0)


def _cluster(wanted: int, draw: random.Random) -> Row:
    files = {"--output": "labels.csv", "--save": "m.model", "--report": "r.html"}

    def command(folder: Path) -> list[str]:
        words = [word for option, name in files.items() for word in (option, str(folder / name))]
        return [*COTERIE, "cluster", str(SAMPLES / "wine.csv"), "-k", "3", "--exclude", "cultivar", *words]

    def damaged(folder: Path, whole: Path) -> int:
        written = [folder / name for name in files.values() if (folder / name).exists()]
        return sum(
            not path.read_bytes().rstrip().endswith(b"</html>")
            if path.suffix == ".html"
            else path.read_bytes() != (whole / path.name).read_bytes()
            for path in written
        )

    return _interrupted(command, damaged, wanted, draw)


def _training(wanted: int, draw: random.Random) -> Row:
    def command(folder: Path) -> list[str]:
        (folder / "run.json").write_text(json.dumps(TRAINING))
        resume = ["--resume"] * (folder / "run/state.pt").exists()
        where = ["--config", str(folder / "run.json"), "--output", str(folder / "run")]
        return [*COTERIE, "train", "learned-lloyd", *where, *resume]

    def damaged(folder: Path, whole: Path) -> int:
        import torch

        from coterie.checkpoints.state import load_state

        if not (folder / "run/state.pt").exists():
            return 0
        state, other = (load_state(place / "run/state.pt") for place in (folder, whole))
        same = (torch.equal(state["average"][name], weight) for name, weight in other["average"].items())
        return int(state["step"] == other["step"] and not all(same))

    return _interrupted(command, damaged, wanted, draw)


def _checkpoint(wanted: int, draw: random.Random) -> Row:
    def damaged(folder: Path, whole: Path) -> int:
        one, other = (place / "result.npy" for place in (folder, whole))
        return int(one.exists() and not np.array_equal(np.load(one), np.load(other)))

    return _interrupted(lambda folder: [sys.executable, "-c", FIT, str(folder)], damaged, wanted, draw)


def _dask(victim: Victim, model: Callable[[], Any], wanted: int, draw: random.Random) -> Row:
    return fits_with_kills(victim, lambda kills: kills >= wanted, model=model)


def fits_with_kills(
    victim: Victim,
    enough: Callable[[int], bool],
    after_fit: Callable[[], object] = lambda: None,
    model: Callable[[], Any] = _kmeans,
) -> Row:
    """Fit on a cluster of processes that are killed until ``enough(number of kills)``, and compare every result.

    A process is killed whenever the cluster is complete, after up to as many seconds as a whole fit takes: a pass that
    is disturbed five times in a row gives up.
    """
    import dask

    import distributed

    with dask.config.set(scheduler="synchronous"):
        undisturbed = _fitted(model)
    same: list[bool] = []
    draw, kills = random.Random(0), 0

    def fit() -> None:
        same.append(False)
        with contextlib.suppress(ClusterError):  # which counts as a result that is not the same
            same[-1] = all(map(np.array_equal, _fitted(model), undisturbed))
        after_fit()

    with (
        contextlib.closing(Cluster()) as cluster,
        distributed.Client(cluster.address, timeout=60) as client,
        ThreadPoolExecutor(1) as other,
    ):
        for _ in range(2):  # the first one waits for the workers and for compiled code
            began = time.perf_counter()
            fit()
        longest = max(1.0, time.perf_counter() - began)
        while not enough(kills):
            running = other.submit(fit)
            while not wait([running], 0.2).done:
                if not enough(kills) and cluster.is_complete(client):
                    time.sleep(draw.uniform(0.0, longest))
                    if victim == "worker":
                        kill(draw.choice(cluster.workers))
                    else:
                        cluster.close()
                    kills += 1
                cluster.start_missing()
            running.result()
    return {"kills": kills, "ended": len(same), "damaged": same.count(False)}


def _make_block(number: int) -> np.ndarray:
    rng = np.random.default_rng([2, number])
    middles = 3 * np.random.default_rng(0).normal(size=(K, D))
    return (middles[rng.integers(0, K, BLOCK_ROWS)] + rng.standard_normal((BLOCK_ROWS, D))).astype("float32")


def _fitted(model: Callable[[], Any]) -> list[np.ndarray]:
    """What a fit to the rows on the cluster finds."""
    import dask
    import dask.array as da

    parts = [da.from_delayed(dask.delayed(_make_block)(b), (BLOCK_ROWS, D), "float32") for b in range(BLOCKS)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = model().fit(da.concatenate(parts))
    return [np.asarray(value) for name, value in vars(found).items() if name in FOUND]


def _studio(wanted: int, draw: random.Random) -> Row:
    """Kill workers of the studio during runs on one table."""
    count = bad = ends = 0
    with studio() as client:
        opened = client.ask("POST", "/api/tables?name=kills.csv", csv_table(draw, ROWS))
        began, first = time.perf_counter(), client.start(opened, "kmeans")
        client.finished(first)
        longest, whole = time.perf_counter() - began, client.labels(first)
        while count < wanted or not ends:
            identity = client.start(opened, "kmeans")
            killed = client.kill_a_worker(draw, 1.1 * longest) if count < wanted else 0
            count += killed
            done = client.finished(identity)["state"] == "done"
            ends += done
            bad += client.labels(identity) != whole if done else not killed
    return {"kills": count, "ended": ends, "damaged": bad}


def _interrupted(
    command: Callable[[Path], list[str]], damaged: Callable[[Path, Path], int], wanted: int, draw: random.Random
) -> Row:
    """Kill a program until it has been killed often enough; one that ends by itself begins again in a new folder."""
    with TemporaryDirectory() as place:
        whole = Path(place, "whole")
        whole.mkdir()
        began = time.perf_counter()
        subprocess.run(command(whole), check=True, capture_output=True)
        longest = time.perf_counter() - began
        count = writing = bad = ends = 0
        folder = Path(place, "0")
        folder.mkdir()
        while count < wanted or not ends:
            before = _temporary(folder)
            process = started(*command(folder))
            if count < wanted and _moment(process, folder, longest, draw):
                number = draw.choice([signal.SIGKILL, signal.SIGTERM])
                writing += bool(_temporary(folder) - before)
                process.send_signal(number)
                process.wait()
                count += 1
                if number == signal.SIGTERM:
                    bad += len(_temporary(folder) - before)
            process.wait()
            bad += damaged(folder, whole)
            if process.returncode == 0:
                ends += 1
                folder = Path(place, str(ends))
                folder.mkdir()
        return {"kills": count, "while_writing": writing, "ended": ends, "damaged": bad}


def _moment(process: subprocess.Popen, folder: Path, longest: float, draw: random.Random) -> bool:
    """Wait for a random moment, or, half of the time, until a file is being written; whether the program still runs."""
    end, before = time.monotonic() + draw.uniform(0.3, 1.1) * longest, _temporary(folder)
    at_writing, skipped = draw.random() < 0.5, draw.randrange(4)
    while process.poll() is None:
        now = _temporary(folder)
        if at_writing and now - before:
            if not skipped:
                return True
            skipped -= 1
            before = now
        elif not at_writing and time.monotonic() > end:
            return True
        time.sleep(0.0005 if at_writing else 0.01)
    return False


def _temporary(folder: Path) -> set[Path]:
    """The hidden files of a folder: what is being written, and what SIGKILL left of it."""
    return {path for path in folder.rglob("*") if path.name.startswith(".")}


SUBJECTS: dict[str, Callable[[int, random.Random], Row]] = {
    "coterie cluster": _cluster,
    "training": _training,
    "checkpoint": _checkpoint,
    "Dask workers": partial(_dask, "worker", _kmeans),
    "Dask scheduler": partial(_dask, "scheduler", _kmeans),
    "Dask workers, mixture": partial(_dask, "worker", _mixture),
    "studio workers": _studio,
}


def cells(quick: bool) -> list[Cell]:
    wanted = 2 if quick else KILLS
    return [Cell(name, partial(subject, wanted, random.Random(name))) for name, subject in SUBJECTS.items()]


def summary(rows: list[Row]) -> Row:
    sums = {key: sum(row[key] for row in rows) for key in ("kills", "damaged")}
    return {**sums, "subjects": {row["cell"]: row for row in rows}}


BENCHMARK = Benchmark(
    name="interruptions",
    title="Programs that are killed",
    folder="soak",
    readme=False,
    rows="subjects",
    needs=("dask", "distributed", "lightning", "psutil", "starlette"),
    cells=cells,
    summary=summary,
    intro="{kills} kills; **{damaged} files half-written or left behind, or results changed**.",
    columns={
        "program": "{cell}",
        "kills": "{kills}",
        "while it wrote a file": "{while_writing}",
        "whole runs compared": "{ended}",
        "damaged": "{damaged}",
    },
)
