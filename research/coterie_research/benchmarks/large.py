"""Whole answers on large tables: the command line, starts on chunks, EM, and the first fit of a new environment.

The commands are processes of their own, whose time and peak memory, that of the largest process, are those of the
system. Starts and EM are measured here, in seconds of a processor.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans as Peer
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

from coterie.mixtures.gaussians import Gaussians, Kind
from coterie_research.benchmarks.harness import Benchmark, Cell, Columns, Row, alternated, filled
from coterie_research.stress.processes import COTERIE, started

KINDS: tuple[Kind, ...] = ("full", "tied", "diag", "spherical")
FIRST = """
import sys, time
from {module} import KMeans
import numpy as np
KMeans(n_clusters=8, n_init=1, random_state=0).fit(np.random.default_rng(0).normal(size=({n}, 16)))
print(time.process_time())
"""


def cells(quick: bool) -> list[Cell]:
    many = 20 if quick else 1
    chunked = (5_000, 2) if quick else (100_000, 40)
    return [
        Cell("12 blobs", partial(answered, _blobs, 2_000_000 // many, ())),
        Cell("mixed columns", partial(answered, _mixed, 10_000_000 // many, ())),
        Cell("mixed columns, two workers", partial(answered, _mixed, 10_000_000 // many, ("--workers", "2"))),
        Cell("mixture", partial(answered, _blobs, 10_000_000 // (5 * many), ("-a", "flow", "--workers", "2"))),
        Cell("starts on chunks", partial(starts, *chunked)),
        *(Cell(f"EM, {kind}", partial(em, kind, 1_000_000 // many)) for kind in KINDS),
        Cell("first fit", partial(first_fit, 200_000 // many)),
        Cell("first fit, small", partial(first_fit, 1_000)),
    ]


# --- commands ---------------------------------------------------------------------------------------------


def answered(make: Callable, n: int, options: tuple[str, ...]) -> Row:
    """``coterie cluster`` of a Parquet file without a number of clusters, against the clusters of the drawing."""
    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as pq

    with tempfile.TemporaryDirectory(prefix="coterie-large-") as folder:
        table, labels = Path(folder, "rows.parquet"), Path(folder, "labels" if options else "labels.parquet")
        frame, truth = make(np.random.default_rng(0), n)
        pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), table, row_group_size=125_000)
        del frame
        began = time.perf_counter()
        command = [*COTERIE, "cluster", str(table), "--json", "--output", str(labels), *options]
        _, status, used = os.wait4(started(*command).pid, 0)
        seconds = time.perf_counter() - began
        if status:
            raise RuntimeError(f"{' '.join(command)} ended with {status}.")
        found = pd.read_parquet(labels)["cluster"].to_numpy()
        return {
            "rows": n,
            "clusters": len(np.unique(found[found >= 0])),
            "true_clusters": len(np.unique(truth)),
            "ari": adjusted_rand_score(truth, found),
            "seconds": seconds,
            "cpu_seconds": used.ru_utime + used.ru_stime,
            "peak_bytes": used.ru_maxrss * 1024,
        }


def _blobs(rng: np.random.Generator, n: int):
    import pandas as pd

    truth = rng.integers(0, 12, n, dtype="int8")
    rows = (4 * rng.normal(size=(12, 8))).astype("float32")[truth]
    rows += rng.standard_normal((n, 8), dtype="float32")
    return pd.DataFrame(rows, columns=[f"x{column}" for column in range(8)]), truth


def _mixed(rng: np.random.Generator, n: int):
    """Six numbers of which 2% are missing, and two categories that depend on the cluster."""
    import pandas as pd

    truth = rng.integers(0, 5, n, dtype="int8")
    rows = (4 * rng.normal(size=(5, 6))).astype("float32")[truth]
    rows += rng.standard_normal((n, 6), dtype="float32")
    rows[rng.random((n, 6), dtype="float32") < 0.02] = np.nan
    frame = pd.DataFrame(rows, columns=["age", "income", "visits", "spent", "distance", "rating"])
    for column, levels in (("city", ["Aachen", "Bergen", "Como"]), ("plan", ["basic", "family", "student"])):
        usual = rng.integers(0, 3, 5)[truth]
        drawn = np.where(rng.random(n) < 0.7, usual, rng.integers(0, 3, n))
        frame[column] = pd.Categorical.from_codes(drawn.astype("int8"), levels)
    return frame, truth


# --- in this process --------------------------------------------------------------------------------------


def starts(n: int, seeds: int) -> Row:
    """How often 12 blobs are found on chunks, and the inertia on ten sets beside greedy k-means++ in memory."""
    from coterie import KMeans

    blobs, truth = _blobs(np.random.default_rng(0), n)
    found, ratios = 0, []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.npy")
        np.save(path, blobs.to_numpy())
        for seed in range(seeds):
            model = KMeans(12, random_state=seed).fit(path)
            found += adjusted_rand_score(truth, model.predict(path)) > 0.9
        for seed in range(10):
            rng = np.random.default_rng(seed)
            k = int(rng.integers(5, 30))
            X = (3 * rng.normal(size=(k, 8)))[rng.integers(0, k, n)] + rng.normal(size=(n, 8))
            np.save(path, X)
            ratios.append(KMeans(k, random_state=seed).fit(path).inertia_ / Peer(k, random_state=seed).fit(X).inertia_)
    return {"rows": n, "found": found / seeds, "seeds": seeds, "inertia": ratios}


def em(kind: Kind, n: int) -> Row:
    """One iteration of EM, 16 columns and 20 clusters, of both packages from the same mixture."""
    from coterie.mixtures.moments import Rows, estimate

    rng = np.random.default_rng(0)
    centers = 4 * rng.normal(size=(20, 16))
    X = centers[rng.integers(0, 20, n)] + rng.normal(size=(n, 16))
    theirs = GaussianMixture(20, covariance_type=kind, init_params="random_from_data", means_init=centers, max_iter=1)
    theirs.set_params(random_state=0).fit(X[:20_000])
    rows = Rows.of(X)
    start = Gaussians(theirs.means_, theirs.weights_, theirs.covariances_, kind, 0.0, rows.log_volume)

    def their_iteration() -> None:
        theirs._m_step(X, theirs._e_step(X)[1])

    def our_iteration() -> None:
        estimate(rows, rows.expected(start), kind)

    ours, peer = (min(each.cpu) for each in alternated([our_iteration, their_iteration], lambda times, _: times == 3))
    return {"rows": n, "cpu_seconds": ours, "peer_cpu_seconds": peer, "times": peer / ours}


def first_fit(n: int) -> Row:
    """From the start of Python to the labels: nothing compiled yet, compiled before, and scikit-learn."""
    with tempfile.TemporaryDirectory() as cache:
        given = {**os.environ, "NUMBA_CACHE_DIR": cache}

        def seconds(module: str) -> float:
            code = FIRST.format(module=module, n=n)
            ran = subprocess.run([sys.executable, "-W", "ignore", "-c", code], env=given, check=True, stdout=-1)
            return json.loads(ran.stdout)

        cold = seconds("coterie")
        later, peer = zip(*((seconds("coterie"), seconds("sklearn.cluster")) for _ in range(3)))
    return {"rows": n, "cold": cold, "cpu_seconds": min(later), "peer_cpu_seconds": min(peer)}


def page(record: Row) -> list[str]:
    tables: dict[str, Columns] = {
        "peak_bytes": {
            "command line": "{cell}",
            "rows": "{rows:,}",
            "clusters": "{clusters} of {true_clusters}",
            "index": "{ari:.3f}",
            "seconds": "{seconds:.0f}",
            "seconds of a processor": "{cpu_seconds:.0f}",
            "peak memory, MB": lambda row: f"{row['peak_bytes'] / 2**20:,.0f}",
        },
        "inertia": {
            "": "{cell}",
            "rows": "{rows:,}",
            "all 12 blobs found": lambda row: f"{row['found']:.1%} of {row['seeds']} seeds",
            "inertia over that of scikit-learn in memory, ten sets": lambda row: (
                f"median {np.median(row['inertia']):.5f}, largest {max(row['inertia']):.5f}"
            ),
        },
        "times": {
            "one iteration, seconds of a processor": "{cell}",
            "rows": "{rows:,}",
            "coterie": "{cpu_seconds:.2f}",
            "scikit-learn": "{peer_cpu_seconds:.2f}",
            "times as fast": "{times:.1f}",
        },
        "cold": {
            "from the start of Python to labels, seconds of a processor": "{cell}",
            "rows": "{rows:,}",
            "nothing compiled": "{cold:.1f}",
            "compiled before": "{cpu_seconds:.1f}",
            "scikit-learn": "{peer_cpu_seconds:.1f}",
        },
    }
    rows = record["rows"]
    chosen = {key: [row for row in rows if key in row] for key in tables}
    return [line for key in tables if chosen[key] for line in [*filled(tables[key], chosen[key]), ""]]


BENCHMARK = Benchmark(
    name="large",
    title="Whole answers on large tables",
    cells=cells,
    needs=("dask", "distributed"),
    intro="`coterie cluster FILE.parquet`, without a number of clusters, as processes of their own; the peak is that "
    "of the largest. Starts, iterations of EM (20 clusters, 16 columns; the fastest of three) and first fits (16 "
    "columns, 8 clusters) run on one thread if `OMP_NUM_THREADS=1`.",
    page=page,
)
