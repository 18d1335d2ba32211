"""Whatever the columns hold and whichever estimator is used, every row is counted once, under a label that is used."""

from functools import cache

import numpy as np
import pandas as pd
import pytest

from coterie.catalogue import CATALOGUE
from coterie.explain.report import report_on
from coterie.tables.kinds import KINDS
from coterie.tables.table import Table
from coterie.tabular import cluster_table

SHORT = {row.short: row for row in CATALOGUE.values() if row.short is not None}
BRIEFLY = {"vae": {"max_iter": 2}}  # of fits that would take long, which are tried on one table
CASES = [(short, seed) for short in SHORT for seed in range(1 if short in BRIEFLY else 4)]


@cache
def table(seed):
    """Random columns, some of every kind, each with missing values in some tables and related to groups in some."""
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(60, 140)), int(rng.integers(1, 5))
    group = rng.integers(k, size=n)
    columns = {
        "weight": rng.normal(size=n) + 4 * group,
        "income": np.exp(rng.normal(size=n) + group),
        "visits": rng.poisson(3 + 5 * group),
        "stage": rng.integers(1, 5, n),
        "answer": rng.choice(["low", "medium", "high"], n),
        "place": np.array(list("abcdefgh"))[(group + rng.integers(0, 2, n)) % 8],
        "many": [f"v{i}" for i in rng.integers(0, n // 3, n)],
        "ticked": pd.Series("yes", range(n)).where(rng.random(n) < 0.5),
        "born": pd.Timestamp("1950-01-01") + pd.to_timedelta(rng.integers(0, 20_000, n), "D"),
        "made": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 90, n), "D"),
        "at": [f"{hour:02d}:{minute:02d}" for hour, minute in zip(rng.integers(0, 24, n), rng.integers(0, 60, n))],
        "lat": rng.uniform(-80, 80, n),
        "lon": rng.uniform(-180, 180, n),
        "sports": [";".join(rng.choice(["run", "swim", "row"], rng.integers(1, 4), replace=False)) for _ in range(n)],
        "note": [f"row {i} says something that is not the same" for i in range(n)],
        "id": np.arange(n),
        "same": "x",
        "nothing": np.nan,
    }
    frame = pd.DataFrame(columns)
    if seed % 2:
        for name in rng.choice(frame.columns[:-2], 5, replace=False):
            frame[name] = frame[name].where(rng.random(n) > 0.2)
    return frame


def test_the_tables_have_columns_of_every_kind():
    assert {column.kind for column in Table.of(table(0)).read_columns()} == {*KINDS, "empty"}


@pytest.mark.parametrize("short, seed", CASES)
def test_labels_are_0_to_k_and_counts_add_up(short, seed):
    frame = table(seed)
    given = {"clusters": 3} if SHORT[short].counts and not SHORT[short].finds else {}
    found = cluster_table(frame, algorithm=short, settings=BRIEFLY.get(short, {}), **given)
    assert set(found.labels) - {-1} == set(range(found.k))
    assert len(found.labels) == len(frame)
    document = found.facts.document()
    assert document["n_clusters"] == found.k == len(document["clusters"])
    assert sum(one["rows"] for one in document["clusters"]) + document["outliers"] == document["rows"] == len(frame)
    np.testing.assert_array_equal(found.sizes, np.bincount(found.labels[found.labels >= 0], minlength=found.k))
    if short == "trimmed":
        assert f"{len(frame):,} rows" in report_on(found, refits=0).html


@pytest.mark.parametrize("rows", [1_400, 3_000])
def test_a_category_of_seventy_values_uses_every_cluster_and_tells_nothing(rows):
    found = cluster_table(pd.DataFrame({"c": [f"v{i % 70}" for i in range(rows)]}))
    assert set(found.labels) == set(range(found.k))
    assert found.verdict.words == "cannot tell"
