"""Time and memory of importing KMeans, and the time of the first fit in a new process, compared with scikit-learn."""

import json
import statistics
import subprocess
import sys
from functools import partial

from coterie_research.benchmarks.harness import Benchmark, Cell, Row, table

PACKAGES = {"coterie": "coterie", "scikit-learn": "sklearn.cluster"}
SCRIPT = """
import json, resource, sys, time
began = time.perf_counter()
from {module} import KMeans
imported, memory = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
import numpy as np
X = np.random.default_rng(0).normal(size=(1000, 4))
began = time.perf_counter()
KMeans(n_clusters=4, n_init=1, random_state=0).fit(X).predict(X)
fitted = time.perf_counter() - began
print(json.dumps([imported, memory / 1024, fitted, sorted({{"torch", "numba"}} & set(sys.modules))]))
"""
COLUMNS = ("import, s", "import, MB", "first fit, s")


def measured(module: str) -> list:
    """Seconds of the import, peak memory after it in MB, seconds of the first fit, and the large modules it loads."""
    command = [sys.executable, "-c", SCRIPT.format(module=module)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def measure(repeats: int) -> Row:
    """Medians over alternating processes, after one process per package that fills the caches."""
    runs = [{name: measured(module) for name, module in PACKAGES.items()} for _ in range(1 + repeats)][1:]
    return {
        name: {
            **{column: statistics.median(one[name][i] for one in runs) for i, column in enumerate(COLUMNS)},
            "loads": runs[0][name][3],
        }
        for name in PACKAGES
    }


BENCHMARK = Benchmark(
    name="imports",
    title="Importing KMeans, and its first fit in a new process",
    folder="kmeans-bench",
    readme=False,
    rows=None,
    settings=lambda quick: {"repeats": 1 if quick else 15},
    cells=lambda quick: [Cell("both packages", partial(measure, 1 if quick else 15))],
    summary=lambda rows: {"rows": {name: rows[0][name] for name in PACKAGES}},
    page=lambda record: table(
        ["", *COLUMNS, "modules"],
        (
            [name, *(f"{row[column]:.3g}" for column in COLUMNS), ", ".join(row["loads"]) or "-"]
            for name, row in record["rows"].items()
        ),
    ),
)
