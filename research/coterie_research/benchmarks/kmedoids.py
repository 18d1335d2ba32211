"""KMedoids compared with FasterPAM (package ``kmedoids``) on squared distances of ten data sets, with equal restarts.

Command: ``coterie bench kmedoids``.
"""

import json
import time
from pathlib import Path

import numpy as np
from sklearn import datasets
from sklearn.metrics import pairwise_distances
from sklearn.preprocessing import StandardScaler

from coterie.estimators import KMedoids
from coterie.files import replacing


def data_sets() -> dict[str, tuple[np.ndarray, int]]:
    """Rows and number of clusters by name. Tables are standardised; nothing is downloaded."""

    def table(name: str) -> np.ndarray:
        return StandardScaler().fit_transform(getattr(datasets, f"load_{name}")().data)

    return {
        "iris": (table("iris"), 3),
        "wine": (table("wine"), 3),
        "breast cancer": (table("breast_cancer"), 5),
        "digits": (datasets.load_digits().data, 10),
        "diabetes": (table("diabetes"), 6),
        "blobs": (datasets.make_blobs(1000, 8, centers=15, random_state=0)[0], 15),
        "moons": (datasets.make_moons(800, noise=0.08, random_state=0)[0], 12),
        "circles": (datasets.make_circles(800, noise=0.05, factor=0.5, random_state=0)[0], 10),
        "swiss roll": (datasets.make_swiss_roll(1000, random_state=0)[0], 20),
        "uniform": (np.random.default_rng(0).uniform(size=(1000, 4)), 25),
    }


def run(quick: bool = False, output: Path = Path("results/kmedoids-bench")) -> dict:
    """Compare one restart of each method per seed, for 10 seeds (2 with ``quick``).

    Ratios are of the mean inertia, KMedoids over FasterPAM.
    """
    try:
        import kmedoids
    except ImportError as error:
        raise ImportError("This benchmark needs the package kmedoids: pip install 'coterie[dev]'.") from error

    seeds = range(2 if quick else 10)
    began, rows = time.perf_counter(), []
    for name, (X, k) in data_sets().items():
        X = np.ascontiguousarray(X, dtype=np.float64)
        clock = time.perf_counter()
        ours = np.array([KMedoids(k, random_state=seed).fit(X).inertia_ for seed in seeds])
        middle = time.perf_counter()
        distances = pairwise_distances(X, metric="sqeuclidean")
        theirs = np.array([kmedoids.fasterpam(distances, k, random_state=seed).loss for seed in seeds])
        end = time.perf_counter()
        rows.append(
            {
                "data": name,
                "n": len(X),
                "k": k,
                "inertia": ours.mean(),
                "fasterpam": theirs.mean(),
                "ratio": ours.mean() / theirs.mean(),
                "wins": int(np.sum(ours < theirs * (1 - 1e-9))),
                "ties": int(np.sum(np.abs(ours / theirs - 1) <= 1e-9)),
                "seconds": middle - clock,
                "fasterpam_seconds": end - middle,
            }
        )
    result = {
        "command": "coterie bench kmedoids" + (" --quick" if quick else ""),
        "restarts": len(seeds),
        "rows": rows,
        "mean_ratio": float(np.mean([row["ratio"] for row in rows])),
        "wins": sum(row["wins"] for row in rows),
        "ties": sum(row["ties"] for row in rows),
        "runs": len(seeds) * len(rows),
        "seconds": time.perf_counter() - began,
    }
    output = Path(output)
    output.mkdir(parents=True, exist_ok=True)
    with replacing(output / "kmedoids.json") as file:
        file.write_text(json.dumps(result, indent=1))
    with replacing(output / "README.md") as file:
        file.write_text(markdown(result))
    return result


def markdown(result: dict) -> str:
    lines = [
        "# KMedoids compared with FasterPAM",
        "",
        f"`{result['command']}`: {result['restarts']} restarts of each method with squared Euclidean distances.",
        "",
        "| data | n | k | inertia ÷ inertia of FasterPAM | wins | ties | seconds | seconds of FasterPAM |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in result["rows"]:
        lines.append(
            f"| {row['data']} | {row['n']} | {row['k']} | {row['ratio']:.4f} | {row['wins']} | {row['ties']} "
            f"| {row['seconds']:.2f} | {row['fasterpam_seconds']:.2f} |"
        )
    lines += [
        "",
        f"The mean ratio is {result['mean_ratio']:.4f}, with {result['wins']} wins and {result['ties']} ties "
        f"in {result['runs']} runs.",
        "",
    ]
    return "\n".join(lines)
