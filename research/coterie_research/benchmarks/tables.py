"""Tables as they are: no number of clusters, no preparation by hand.

``table_files/index.csv`` lists the tables with their sources: real ones, and synthetic ones with the flaws of exported
files. The zero-shot clusterer gets a file as ``coterie cluster FILE`` does. k-means with the silhouette, a Gaussian
mixture with BIC and HDBSCAN get the usual pipeline, without identifiers: numbers are imputed by the median and scaled,
dates become days, and other columns are one-hot encoded with at most 20 values.
"""

import csv
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.metrics import adjusted_rand_score

from coterie.tables.kinds import ID
from coterie.tables.table import Table, read_table
from coterie.tabular import cluster_table
from coterie_research.benchmarks.harness import Benchmark, Cell, Row, table
from coterie_research.benchmarks.methods import (
    best_kmeans,
    best_mixture,
    grouped,
    hdbscan,
    interval,
    number_of_clusters,
    told,
)

FILES = Path(__file__).parent / "table_files"
MOST = 10  # clusters that peers try
AGREES = 0.6  # adjusted Rand index of clusters that are the groups
QUICK = ("penguins", "customers", "one-group")


class TableSet(NamedTuple):
    """One table. ``label`` is the column with the true groups, which is removed; None if there are none."""

    path: Path
    label: str | None
    source: str

    @property
    def name(self) -> str:
        return self.path.name.partition(".")[0]


def sets() -> list[TableSet]:
    with open(FILES / "index.csv", newline="") as file:
        return [TableSet(FILES / row["file"], row["label"] or None, row["source"]) for row in csv.DictReader(file)]


def usual_pipeline(frame: pd.DataFrame) -> np.ndarray:
    """Numbers imputed and scaled, everything else one-hot encoded."""
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    frame = frame.dropna(axis=1, how="all").copy()
    for name in frame.select_dtypes(["datetime", "datetimetz"]):
        frame[name] = frame[name].astype("int64") / 8.64e13
    numbers = [name for name in frame if pd.api.types.is_numeric_dtype(frame[name])]
    texts = [name for name in frame if name not in numbers]
    frame[texts] = frame[texts].astype(object).where(frame[texts].notna(), "missing").astype(str)
    prepare = ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), numbers),
            ("texts", OneHotEncoder(max_categories=20, sparse_output=False), texts),
        ]
    )
    return prepare.fit_transform(frame)


PEERS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "k-means + silhouette": lambda X: best_kmeans(X, range(2, MOST + 1), n_init=10),
    "Gaussian mixture + BIC": lambda X: best_mixture(X, range(1, MOST + 1), n_init=3, reg_covar=1e-3).predict(X),
    "HDBSCAN": lambda X: hdbscan(X, least=max(5, len(X) // 50)),
}
METHODS = ("zero-shot", *PEERS)


def measure(one: TableSet, *, peers: bool = True) -> Row:
    """The scores of every method on one table."""
    whole = read_table(one.path)
    truth = None if one.label is None else pd.factorize(whole[one.label].astype(str))[0]
    frame = whole if one.label is None else whole.drop(columns=one.label)
    began = time.process_time()
    found = cluster_table(frame)
    rows = {"zero-shot": _scores(truth, found.labels, time.process_time() - began, list(found.facts.notes))}
    rows["zero-shot"]["verdict"] = found.verdict.words
    ids = [column.name for column in Table.of(frame).read_columns() if column.kind == ID]
    plain = frame.drop(columns=ids)  # files are often sorted by group, so that row numbers would tell the groups
    for name, fit in PEERS.items() if peers else ():
        began = time.process_time()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            labels = fit(usual_pipeline(plain))
        told = sorted({str(one.message).split("\n")[0] for one in caught})
        rows[name] = _scores(truth, labels, time.process_time() - began, told)
    groups = None if truth is None else len(np.unique(truth))
    return {
        "name": one.name, "source": one.source, "rows": len(frame), "columns": frame.shape[1], "groups": groups,
        "methods": rows,
    }  # fmt: skip


def _scores(truth: np.ndarray | None, labels: np.ndarray, seconds: float, told: list[str]) -> Row:
    ari = None if truth is None else float(adjusted_rand_score(truth, labels))
    return {"ari": ari, "k": number_of_clusters(labels), "seconds": seconds, "warnings": told}


def summary(rows: list[Row]) -> Row:
    labelled = [row for row in rows if row["groups"] is not None]
    exact = [{name: one["methods"][name]["k"] == one["groups"] for name in METHODS} for one in labelled]
    reached = grouped([one["methods"]["zero-shot"] for one in labelled], "verdict")
    real = [one["methods"] for one in labelled if not one["source"].startswith("synthetic")]
    return {
        "methods": METHODS,
        "verdicts": {
            words: [len(found), sum(one["ari"] >= AGREES for one in found)] for words, found in reached.items()
        },
        "real": len(real),
        "less": {
            name: interval([one["zero-shot"]["ari"] - one[name]["ari"] for one in real]) for name in PEERS if real
        },
        "mean_ari": {name: float(np.mean([one["methods"][name]["ari"] for one in labelled])) for name in METHODS},
        "exact_k": {name: float(np.mean([one[name] for one in exact])) for name in METHODS},
    }


def page(record: Row) -> list[str]:
    methods = record["methods"]
    lines = [
        [one["name"], f"{one['rows']:,} × {one['columns']}", one["groups"] or ""]
        + [_cell(one["methods"][name]) for name in methods]
        + [one["source"]]
        for one in record["tables"]
    ]
    seconds = {name: sum(one["methods"][name]["seconds"] for one in record["tables"]) for name in methods}
    lines += [
        ["mean", "", "", *(f"**{record['mean_ari'][name]:.3f}**" for name in methods), ""],
        ["exact number of clusters", "", "", *(f"{record['exact_k'][name]:.0%}" for name in methods), ""],
        ["CPU seconds in total", "", "", *(f"{seconds[name]:.0f}" for name in methods), ""],
    ]
    return [
        "Adjusted Rand index with the true groups, then the number of clusters. No method is given the number of "
        "clusters. zero-shot reads the file as `coterie cluster FILE` does; the others get the usual pipeline without "
        "identifiers (impute, one-hot, scale). Tables without known groups show the number of clusters only.",
        "",
        *table(["table", "rows × columns", "groups", *methods, "source"], lines),
        "",
        f"On the {record['real']} real tables, zero-shot less the others, with a 95% bootstrap interval: "
        + ", ".join(f"{name} {less}" for name, less in ((name, told(less)) for name, less in record["less"].items()))
        + ".",
        "",
        f"The verdict on the clusters of zero-shot, and how many of them agree with the groups by {AGREES} or more:",
        "",
        *table(["verdict", "tables", "agree"], [[words, *counts] for words, counts in record["verdicts"].items()]),
    ]


def _cell(row: Row) -> str:
    return f"{row['k']} clusters" if row["ari"] is None else f"{row['ari']:.3f} ({row['k']})"


BENCHMARK = Benchmark(
    name="tables",
    title="Tables as they are",
    rows="tables",
    cells=lambda quick: [Cell(one.name, partial(measure, one)) for one in sets() if not quick or one.name in QUICK],
    summary=summary,
    page=page,
)
