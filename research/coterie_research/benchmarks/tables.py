"""Tables as they are: no number of clusters, no preparation by hand.

``coterie bench tables`` reads every table of ``_table_sets`` from its file. The zero-shot clusterer gets the file as
``coterie cluster FILE`` does. k-means with the silhouette, a Gaussian mixture with BIC and HDBSCAN get the usual
pipeline: numbers are imputed by the median and scaled, dates become days, and other columns are one-hot encoded with
at most 20 values.
"""

import json
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import adjusted_rand_score

from coterie.files import replacing
from coterie.tables.table import read_table
from coterie.tabular import cluster_table
from coterie_research.benchmarks._table_sets import SETS, TableSet

MOST = 10  # clusters that peers try
QUICK = ("penguins", "customers", "one-group")


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


def k_means(X: np.ndarray) -> np.ndarray:
    from sklearn.cluster import KMeans
    from sklearn.metrics import silhouette_score

    fits = [KMeans(k, n_init=10, random_state=0).fit(X).labels_ for k in range(2, MOST + 1)]
    return max(fits, key=lambda labels: silhouette_score(X, labels))


def gaussian_mixture(X: np.ndarray) -> np.ndarray:
    from sklearn.mixture import GaussianMixture

    fits = [GaussianMixture(k, n_init=3, reg_covar=1e-3, random_state=0).fit(X) for k in range(1, MOST + 1)]
    return min(fits, key=lambda fit: fit.bic(X)).predict(X)


def hdbscan(X: np.ndarray) -> np.ndarray:
    from sklearn.cluster import HDBSCAN

    return HDBSCAN(min_cluster_size=max(5, len(X) // 50)).fit_predict(X)


PEERS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "k-means + silhouette": k_means,
    "Gaussian mixture + BIC": gaussian_mixture,
    "HDBSCAN": hdbscan,
}
METHODS = ("zero-shot", *PEERS)


def measure(one: TableSet, folder: Path, *, peers: bool = True) -> dict[str, Any]:
    """The scores of every method on one table."""
    path = one.make(folder)
    whole = read_table(path)
    truth = None if one.label is None else pd.factorize(whole[one.label].astype(str))[0]
    frame = whole if one.label is None else whole.drop(columns=one.label)
    began = time.process_time()
    found = cluster_table(frame)
    rows = {"zero-shot": _row(truth, found.labels, time.process_time() - began, list(found.facts.notes))}
    for name, fit in PEERS.items() if peers else ():
        began = time.process_time()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            labels = fit(usual_pipeline(frame))
        told = sorted({str(one.message).split("\n")[0] for one in caught})
        rows[name] = _row(truth, labels, time.process_time() - began, told)
    groups = None if truth is None else len(np.unique(truth))
    return {
        "name": one.name, "source": one.source, "rows": len(frame), "columns": frame.shape[1], "groups": groups,
        "methods": rows,
    }  # fmt: skip


def _row(truth: np.ndarray | None, labels: np.ndarray, seconds: float, told: list[str]) -> dict[str, Any]:
    ari = None if truth is None else float(adjusted_rand_score(truth, labels))
    return {"ari": ari, "k": len(np.unique(labels[labels >= 0])), "seconds": seconds, "warnings": told}


def run(quick: bool = False, output: Path = Path("results/tables")) -> dict[str, Any]:
    """Measure all tables (3 with ``quick``)."""
    with tempfile.TemporaryDirectory() as folder:
        tables = [measure(one, Path(folder)) for one in SETS if not quick or one.name in QUICK]
    labelled = [table for table in tables if table["groups"] is not None]
    result = {
        "command": "coterie bench tables" + (" --quick" if quick else ""),
        "methods": METHODS,
        "mean_ari": {name: float(np.mean([one["methods"][name]["ari"] for one in labelled])) for name in METHODS},
        "exact_k": {
            name: float(np.mean([one["methods"][name]["k"] == one["groups"] for one in labelled])) for name in METHODS
        },
        "tables": tables,
    }
    output = Path(output)
    output.mkdir(parents=True, exist_ok=True)
    with replacing(output / "tables.json") as file:
        file.write_text(json.dumps(result, indent=1))
    with replacing(output / "README.md") as file:
        file.write_text(markdown(result))
    return result


def markdown(result: dict[str, Any]) -> str:
    methods = result["methods"]
    lines = [
        "# Tables as they are",
        "",
        f"`{result['command']}`: adjusted Rand index with the true groups, then the number of clusters. No method "
        "is given the number of clusters. zero-shot reads the file as `coterie cluster FILE` does; the others get the "
        "usual pipeline (impute, one-hot, scale). Tables without known groups show the number of clusters only.",
        "",
        "| table | rows × columns | groups | " + " | ".join(methods) + " | source |",
        "|" + "---|" * (len(methods) + 4),
    ]
    for one in result["tables"]:
        cells = [_cell(one["methods"][name]) for name in methods]
        size = f"{one['rows']:,} × {one['columns']}"
        lines.append(f"| {one['name']} | {size} | {one['groups'] or ''} | {' | '.join(cells)} | {one['source']} |")
    means = [f"**{result['mean_ari'][name]:.3f}**" for name in methods]
    exact = [f"{result['exact_k'][name]:.0%}" for name in methods]
    lines.append(f"| mean | | | {' | '.join(means)} | |")
    lines.append(f"| exact number of clusters | | | {' | '.join(exact)} | |")
    seconds = [f"{sum(one['methods'][name]['seconds'] for one in result['tables']):.0f}" for name in methods]
    lines.append(f"| CPU seconds in total | | | {' | '.join(seconds)} | |")
    return "\n".join(lines) + "\n"


def _cell(row: dict[str, Any]) -> str:
    return f"{row['k']} clusters" if row["ari"] is None else f"{row['ari']:.3f} ({row['k']})"
