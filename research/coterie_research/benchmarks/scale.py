"""KMeans on Dask with up to two hundred million rows and one or two workers, compared with dask-ml from the same start.

Rows (8 columns, float32, 32 blobs) are written as Parquet files to a temporary folder. dask-ml reads them in every
pass. coterie does the same unless they fit into a quarter of the memory of the workers: then they are read once.
"""

import os
import pickle
import resource
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from coterie.distributed import fitting, parquet
from coterie.distributed.blocks import blocks_of
from coterie.distributed.cluster import local
from coterie.distributed.passes import Passes, held
from coterie.kmeans.algorithm import Algorithm
from coterie.kmeans.block_statistics import Step, step
from coterie_research.benchmarks.harness import Benchmark, Cell, Row, installed

D, K, ITERATIONS = 8, 32, 10
FILE_ROWS, GROUP_ROWS = 5_000_000, 125_000
LARGEST = 200_000_000
SIZES = (1_000_000, 10_000_000, LARGEST)
QUICK = 100_000
PEER = {(QUICK, 1), (QUICK, 2), (1_000_000, 1), (1_000_000, 2), (10_000_000, 2)}  # an hour for the largest
MEMORY_LIMIT = "2GB"  # a worker


def measure(n: int) -> list[Row]:
    """Ten iterations of both packages from the same start, with one and two workers."""
    cases = []
    with tempfile.TemporaryDirectory(prefix="coterie-scale-") as folder:
        files = make_files(Path(folder), n)
        for workers in (1, 2) if n < LARGEST else (2,):
            methods = {"coterie": ours}
            if (n, workers) in PEER and installed("dask_ml"):
                methods["dask-ml"] = theirs
            for package in sorted(methods):
                case = measured(methods[package], files, n, workers)
                cases.append({"package": package, **case, "load": os.getloadavg()[0]})
    return cases


# --- the data ---------------------------------------------------------------------------------------------


def make_files(folder: Path, n: int) -> list[Path]:
    """Write ``n`` rows as Parquet files of five million rows each, with two processes."""
    import dask

    if shutil.disk_usage(folder).free < 48 * n:
        raise OSError(f"{folder} has too little free space for {n:,} rows: set TMPDIR to a folder on a larger disk.")
    sizes = [min(FILE_ROWS, n - first) for first in range(0, n, FILE_ROWS)]
    paths = [folder / f"rows-{number:04d}.parquet" for number in range(len(sizes))]
    tasks = [dask.delayed(_make_file)(str(path), size, seed) for seed, (path, size) in enumerate(zip(paths, sizes))]
    dask.compute(*tasks, scheduler="processes", num_workers=2)
    return paths


def _middles() -> np.ndarray:
    return 3 * np.random.default_rng(0).normal(size=(K, D)).astype("float32")


def _make_file(path: str, n: int, seed: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng, middles = np.random.default_rng([1, seed]), _middles()
    schema = pa.schema([(f"x{j}", pa.float32()) for j in range(D)])
    with pq.ParquetWriter(path, schema, use_dictionary=False, compression="none") as writer:
        for first in range(0, n, GROUP_ROWS):
            size = min(GROUP_ROWS, n - first)
            rows = middles[rng.integers(0, K, size)] + rng.standard_normal((size, D), dtype="float32")
            writer.write_table(pa.table(list(np.ascontiguousarray(rows.T)), schema=schema))


def _start(files: list[Path]) -> np.ndarray:
    rows = parquet.open_files(files[:1])
    return parquet.read(rows.stretches[0], rows.names, rows.dtype)[:K].copy()


# --- one case each ----------------------------------------------------------------------------------------


@contextmanager
def cluster(workers: int) -> Iterator[Any]:
    """A cluster of processes with one thread each, on the loopback interface."""
    import distributed

    with local(workers, memory_limit=MEMORY_LIMIT) as own, distributed.Client(own) as client:
        client.wait_for_workers(workers)
        yield client


def measured(fit: Callable, files: list[Path], n: int, workers: int) -> Row:
    with cluster(workers) as client:
        # blocks of 64 MB, or smaller so that there are at least eight
        rows = parquet.open_files(files, block_bytes=min(parquet.BLOCK_BYTES, n * D * 4 // 8))
        client.run(_warm_up if fit is ours else _warm_up_peer)
        worked = sum(client.run(time.process_time).values())
        began = time.perf_counter()
        found, finish = fit(client, rows, _start(files))
        seconds = time.perf_counter() - began
        worked = sum(client.run(time.process_time).values()) - worked
        work = rows.n_rows * found["n_iter"]
        return {
            "rows": rows.n_rows,
            "workers": workers,
            "seconds": seconds,
            "rows_per_second": work / seconds,
            "cpu_seconds": worked,
            "rows_per_cpu_second": work / worked,
            "peak_bytes": max(client.run(_peak_bytes).values()),
            **found,
            **finish(),
        }


def ours(client: Any, rows: parquet.ParquetRows, start: np.ndarray) -> tuple[Row, Callable[[], Row]]:
    sent = sum(client.run(_values_sent).values())
    times = [time.perf_counter()]
    with held(blocks_of(rows.array())) as blocks:  # as the estimators do
        passes = Passes(blocks)
        ran = fitting.run(
            passes,
            iter([start]),
            Algorithm(),
            fitting.look(passes, K),
            parameters={},
            max_iter=ITERATIONS,
            tol=0.0,
            on_iteration=lambda done: times.append(time.perf_counter()),
        )

    def finish() -> Row:
        per_iteration = statistics.median(np.diff(times)[1:])
        moved = sum(client.run(_values_sent).values()) - sent
        return {
            "iteration_seconds": per_iteration,
            "iteration_rows_per_second": rows.n_rows / per_iteration,
            "blocks": len(rows.stretches),
            "values_sent_per_pass": moved / (ran.n_iter + 2),
            "inertia": ran.inertia,
            "center_sum": float(np.abs(ran.centers).sum()),
        }

    return {"n_iter": ran.n_iter}, finish


def theirs(client: Any, rows: parquet.ParquetRows, start: np.ndarray) -> tuple[Row, Callable[[], Row]]:
    from dask_ml.cluster import KMeans

    model = KMeans(K, init=start, max_iter=ITERATIONS, tol=0.0).fit(rows.array())
    return {"n_iter": int(model.n_iter_)}, lambda: {"center_sum": float(np.abs(model.cluster_centers_).sum())}


def _warm_up() -> None:
    """Load the compiled kernel."""
    from coterie.kmeans import single_pass

    single_pass.statistics(np.zeros((64, D), "float32"), np.zeros((2, D), "float32"), n_threads=1)


def _warm_up_peer() -> None:
    from dask_ml.cluster.k_means import _centers_dense

    _centers_dense(np.zeros((64, D), "float32"), np.zeros(64, "int32"), 2)


def _peak_bytes() -> int:
    """The peak memory of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _values_sent(dask_worker: Any) -> int:
    """The number of statistics and copies of the centres sent by this worker; ``constants`` has their sizes."""
    return sum(len(entry["keys"]) for entry in dask_worker.transfer_outgoing_log)


# --- constants for other sizes ----------------------------------------------------------------------------


def constants(n_blocks: int) -> Row:
    """The cost of a block besides its rows: seconds of the scheduler, and bytes of its statistics and the centres."""
    import dask.array as da

    with cluster(2) as client:
        X = da.ones((n_blocks * 10, D), chunks=(10, D), dtype="float32")
        passes, wanted = Passes(blocks_of(X)), Step(Algorithm(), _middles())
        client.run(_warm_up)
        part = passes.total(step, wanted)
        began, worked = time.perf_counter(), time.process_time()
        passes.total(step, wanted)
        seconds, here = time.perf_counter() - began, time.process_time() - worked
    return {
        "blocks": n_blocks,
        "seconds_per_block": seconds / n_blocks,
        "cpu_seconds_per_block": here / n_blocks,  # of client and scheduler, which are one process here
        "part_bytes": len(pickle.dumps(part)),
        "state_bytes": len(pickle.dumps(wanted)),
    }


def page(record: Row) -> list[str]:
    constant = record["constants"]
    return [
        *_ratios(record["cases"]),
        "",
        f"A block takes {1e3 * constant['cpu_seconds_per_block']:.2f} ms of CPU time of the scheduler. Its statistics "
        f"have {constant['part_bytes']:,} bytes, and the centres {constant['state_bytes']:,}.",
    ]


def _ratios(cases: list[Row]) -> list[str]:
    rate = {(case["package"], case["rows"], case["workers"]): case["rows_per_second"] for case in cases}
    lines = []
    for package, n, workers in rate:
        if package == "dask-ml":
            times = rate["coterie", n, workers] / rate[package, n, workers]
            many = "s" * (workers > 1)
            lines.append(f"- {n:,} rows, {workers} worker{many}: {times:.1f} times as fast as dask-ml.")
        elif workers == 2 and (package, n, 1) in rate:
            times = rate[package, n, 2] / rate[package, n, 1]
            lines.append(f"- {n:,} rows: two workers are {times:.2f} times as fast as one.")
    return lines


BENCHMARK = Benchmark(
    name="scale",
    title="KMeans on Dask compared with dask-ml",
    rows="cases",
    needs=("dask", "distributed"),
    peers=("dask_ml",),
    settings=lambda quick: {
        "columns": D,
        "clusters": K,
        "iterations": ITERATIONS,
        "constants": constants(200 if quick else 2_000),
    },
    cells=lambda quick: [Cell(f"{n:,} rows", partial(measure, n)) for n in ([QUICK] if quick else SIZES)],
    intro="{columns} columns of float32, k = {clusters}, {iterations} iterations from the same start, one thread per "
    "worker. dask-ml reads the files in every pass, and so does coterie if they exceed a quarter of the workers' "
    "memory; otherwise it reads them once. Rows per second are rows × iterations ÷ seconds of a whole fit, including "
    "the passes before and after the iterations. The load is that of the whole machine, which other processes used "
    "too; CPU seconds depend on it much less.",
    columns={
        "rows": "{rows:,}",
        "workers": "{workers}",
        "package": "{package}",
        "seconds": "{seconds:.1f}",
        "rows per second": "{rows_per_second:,.0f}",
        "rows per CPU second": "{rows_per_cpu_second:,.0f}",
        "rows per second in an iteration": "{iteration_rows_per_second:,.0f}",
        "peak memory of a worker, bytes": "{peak_bytes:,}",
        "load": "{load:.1f}",
    },
    page=page,
)
