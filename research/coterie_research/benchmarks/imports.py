"""Time and memory of importing KMeans, and the time of the first fit in a new process, compared with scikit-learn.

Command: ``coterie bench imports``.
"""

import json
import statistics
import subprocess
import sys
from pathlib import Path

from coterie.files import replacing

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
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(module=module)], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def run(quick: bool = False, output: Path = Path("results/kmeans-bench")) -> dict:
    """Medians over alternating processes, after one process per package that fills the caches."""
    times: dict[str, list[list]] = {name: [] for name in PACKAGES}
    for repeat in range(2 if quick else 16):
        for name, module in PACKAGES.items():
            one = measured(module)
            if repeat:
                times[name].append(one)
    rows = {
        name: {
            **{column: statistics.median(one[i] for one in runs) for i, column in enumerate(COLUMNS)},
            "loads": runs[0][3],
        }
        for name, runs in times.items()
    }
    record = {"command": "coterie bench imports", "repeats": len(times["coterie"]), "rows": rows}
    with replacing(output / "imports.json") as path:
        path.write_text(json.dumps(record, indent=1) + "\n")
    return record


def markdown(record: dict) -> str:
    lines = ["| | " + " | ".join(COLUMNS) + " | modules |", "|" + "---|" * (len(COLUMNS) + 2)]
    for name, row in record["rows"].items():
        numbers = " | ".join(f"{row[column]:.3g}" for column in COLUMNS)
        lines.append(f"| {name} | {numbers} | {', '.join(row['loads']) or '-'} |")
    return "\n".join(lines)
