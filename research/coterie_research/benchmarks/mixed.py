"""Encodings of categories and missing values in mixed tables.

Categories are encoded by the principal axes that they share with other columns, or with one column per value. Missing
values are filled from similar rows, or by the median.
"""

from functools import partial

import numpy as np
import pandas as pd
from sklearn.metrics import adjusted_rand_score

from coterie import KMeans, ZeroShotClusterer
from coterie.tables.encoding import Encoding
from coterie.tables.table import Table
from coterie_research.benchmarks.harness import Benchmark, Cell, Row
from coterie_research.benchmarks.harness import table as markdown_table

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


def measure(seed: int) -> Row:
    """For every encoding, the indices of all methods, and whether the first finds the number of clusters."""
    table, truth = drawn(seed)
    k, row = len(np.unique(truth)), {}
    for name, points in _ways(table, np.random.default_rng(seed)).items():
        labels = [
            estimator.fit(points).labels_
            for estimator in (
                ZeroShotClusterer(scale=False, random_state=0),
                ZeroShotClusterer(k, scale=False, random_state=0),
                KMeans(k, n_init=10, random_state=0),
            )
        ]
        ari = [adjusted_rand_score(truth, one) for one in labels]
        row[name] = {"ari": ari, "exact_k": len(np.unique(labels[0])) == k}
    return {"encodings": row}


def _ways(table: pd.DataFrame, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """The points of one table for every encoding, without and with missing values."""
    columns = [column.values for column in Table.of(table).read_columns()]
    encoding = Encoding.of(columns)
    with_missing = table.mask(rng.random(table.shape) < np.where(table.dtypes == np.float64, GAPS, 0.0))
    by_median = with_missing.fillna(with_missing.median(numeric_only=True))
    return {
        "one column per value": (encoding.values(columns) - encoding.middle) / encoding.spread,
        "shared axes": encoding.points(columns),
        "shared axes, missing values filled by the median": _points(by_median),
        "shared axes, missing values filled from the most similar row": _points(with_missing),
    }


def _points(table: pd.DataFrame) -> np.ndarray:
    columns = [column.values for column in Table.of(table).read_columns()]
    return Encoding.of(columns).points(columns)


def summary(rows: list[Row]) -> Row:
    """Means over the tables, for every encoding."""
    found: Row = {"tables": len(rows), "methods": METHODS, "ari": {}, "error": {}, "exact_k": {}}
    for name in rows[0]["encodings"]:
        ari = np.array([row["encodings"][name]["ari"] for row in rows])
        found["ari"][name] = ari.mean(axis=0).tolist()
        found["error"][name] = (ari.std(axis=0) / np.sqrt(len(ari))).tolist()
        found["exact_k"][name] = float(np.mean([row["encodings"][name]["exact_k"] for row in rows]))
    return found


def page(record: Row) -> list[str]:
    lines = []
    for name, values in record["ari"].items():
        cells = [f"{value:.3f} ± {error:.3f}" for value, error in zip(values, record["error"][name])]
        lines.append([name, *cells, f"{record['exact_k'][name]:.0%}"])
    return [
        f"{record['tables']} synthetic tables of {ROWS} rows with 2 to 6 clusters that differ in numbers and "
        f"categories. In the last two rows of the table, {GAPS:.0%} of the numbers are missing. Entries are the "
        "adjusted Rand index, ± one standard error.",
        "",
        *markdown_table(["encoding", *record["methods"], "exact number of clusters (zero-shot)"], lines),
    ]


BENCHMARK = Benchmark(
    name="mixed",
    title="Tables with text",
    rows=None,
    seed=SEED,
    cells=lambda quick: [
        Cell(f"table {seed}", partial(measure, seed)) for seed in range(SEED, SEED + (3 if quick else 60))
    ],
    summary=summary,
    page=page,
)
