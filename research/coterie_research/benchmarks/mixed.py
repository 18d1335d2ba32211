"""Encodings of categories and missing values in mixed tables.

Categories are encoded by the principal axes that they share with other columns, or with one column per value. Missing
values are filled from similar rows, or by the median. Command: ``coterie bench mixed``.
"""

import json
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.metrics import adjusted_rand_score

from coterie import KMeans, ZeroShotClusterer
from coterie.files import replacing
from coterie.tables.encoding import Encoding
from coterie.tables.table import Table

SEED = 1_000
ROWS = 400
GAPS = 0.15
METHODS = ("zero-shot", "zero-shot, K given", "k-means, K given")


def drawn(seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """A table with 2 to 6 clusters that differ in 1 to 5 numbers and 1 to 3 categories; up to 2 more are noise."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 7))
    cluster = rng.integers(k, size=ROWS)
    table: dict[str, np.ndarray] = {}
    for j in range(rng.integers(1, 6)):
        table[f"number {j}"] = rng.normal(rng.normal(0, 3, k)[cluster], 1)
    for j in range(rng.integers(1, 4)):
        shares_KL = rng.dirichlet(np.full(rng.integers(2, 6), 0.3), k)
        table[f"category {j}"] = _values(rng, shares_KL[cluster])
    for j in range(rng.integers(0, 3)):
        count = int(rng.choice([3, 30]))
        table[f"noise {j}"] = _values(rng, np.full((ROWS, count), 1 / count))
    return pd.DataFrame(table), cluster


def _values(rng: np.random.Generator, shares_NL: np.ndarray) -> np.ndarray:
    place = (rng.random((len(shares_NL), 1)) > shares_NL.cumsum(axis=1)[:, :-1]).sum(axis=1)
    return np.array([f"value {i}" for i in place], dtype=object)


def run(quick: bool = False, output: Path = Path("results/mixed")) -> dict:
    """Measure 60 tables (3 with ``quick``)."""
    began, count = time.perf_counter(), 3 if quick else 60
    scores: dict[str, list[list[float]]] = defaultdict(list)
    exact: dict[str, list[bool]] = defaultdict(list)
    for seed in range(SEED, SEED + count):
        table, truth = drawn(seed)
        for name, points in _ways(table, np.random.default_rng(seed)).items():
            labels = _labels(points, len(np.unique(truth)))
            scores[name].append([adjusted_rand_score(truth, one) for one in labels])
            exact[name].append(len(np.unique(labels[0])) == len(np.unique(truth)))
    result = {
        "command": "coterie bench mixed" + (" --quick" if quick else ""),
        "tables": count,
        "seed": SEED,
        "methods": METHODS,
        "ari": {name: np.mean(values, axis=0).tolist() for name, values in scores.items()},
        "error": {name: (np.std(values, axis=0) / np.sqrt(count)).tolist() for name, values in scores.items()},
        "exact_k": {name: float(np.mean(values)) for name, values in exact.items()},
        "seconds": time.perf_counter() - began,
    }
    output = Path(output)
    output.mkdir(parents=True, exist_ok=True)
    with replacing(output / "mixed.json") as file:
        file.write_text(json.dumps(result, indent=1))
    with replacing(output / "README.md") as file:
        file.write_text(markdown(result))
    return result


def _ways(table: pd.DataFrame, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """The points of one table for every encoding, without and with missing values."""
    columns = [column.values for column in Table.of(table).read_columns()]
    encoding = Encoding.of(columns)
    every_value = (encoding.values(columns) - encoding.middle) / encoding.spread
    with_missing = table.mask(rng.random(table.shape) < np.where(table.dtypes == np.float64, GAPS, 0.0))
    return {
        "one column per value": every_value,
        "shared axes": encoding.points(columns),
        "shared axes, missing values filled by the median": _points(
            with_missing.fillna(with_missing.median(numeric_only=True))
        ),
        "shared axes, missing values filled from the most similar row": _points(with_missing),
    }


def _points(table: pd.DataFrame) -> np.ndarray:
    columns = [column.values for column in Table.of(table).read_columns()]
    return Encoding.of(columns).points(columns)


def _labels(points: np.ndarray, k: int) -> list[np.ndarray]:
    estimators = (
        ZeroShotClusterer(scale=False, random_state=0),
        ZeroShotClusterer(k, scale=False, random_state=0),
        KMeans(k, n_init=10, random_state=0),
    )
    return [estimator.fit(points).labels_ for estimator in estimators]


def markdown(result: dict) -> str:
    lines = [
        "# Tables with text",
        "",
        f"`{result['command']}` ({result['seconds']:.0f} s): {result['tables']} synthetic tables of {ROWS} rows with 2 "
        "to 6 clusters that differ in numbers and categories. In the last two rows of the table, "
        f"{GAPS:.0%} of the numbers are missing. Entries are the adjusted Rand index, ± one standard error.",
        "",
        "| encoding | " + " | ".join(result["methods"]) + " | exact number of clusters (zero-shot) |",
        "|" + "---|" * (len(result["methods"]) + 2),
    ]
    for name, values in result["ari"].items():
        cells = [f"{value:.3f} ± {error:.3f}" for value, error in zip(values, result["error"][name])]
        lines.append(f"| {name} | {' | '.join(cells)} | {result['exact_k'][name]:.0%} |")
    return "\n".join(lines) + "\n"
