"""The benchmarks on tables, on few of them."""

import json

import numpy as np
import pandas as pd
import pytest

from coterie.tables.columns import values_of
from coterie.tables.table import Table, read_table
from coterie_research.benchmarks import constraints, mixed, real_tables, tables


@pytest.fixture(scope="module")
def every_table():
    return {one.name: (one, Table.of(read_table(one.path)).read_columns()) for one in tables.sets()}


def test_every_table_can_be_read_and_has_a_source_and_its_groups(every_table):
    assert sum(one.label is not None for one, _ in every_table.values()) >= 40
    for one, read in every_table.values():
        assert one.source
        assert one.label is None or one.label in [column.name for column in read]
        assert sum(column.used for column in read) > 1, one.name


def test_no_identifier_row_number_or_constant_is_used(every_table):
    wrong = {"customer_id", "email", "Lfd.Nr.", "row", "patient", "serial", "time", "plant", "note", "id", "name"}
    wrong |= {"(unnamed)", "Sample Number", "Individual ID", "Stage", "rownames", "ID", "case", "Catalog"}
    for name, (_, read) in every_table.items():
        assert not wrong & {column.name for column in read if column.used}, name


def test_the_usual_pipeline_gives_finite_numbers():
    frame = pd.DataFrame({"a": [1, None, 3], "b": ["x", None, "y"], "c": pd.to_datetime(["2024-01-01"] * 3), "d": None})
    assert np.isfinite(tables.usual_pipeline(frame)).all()


def test_files_as_they_are_are_clustered_by_all_methods(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "MOST", 5)
    record = tables.BENCHMARK.run(output=tmp_path, only=["customers"])
    assert json.loads((tmp_path / "tables.json").read_text())["mean_ari"] == record["mean_ari"]
    assert record["mean_ari"]["zero-shot"] > record["mean_ari"]["HDBSCAN"]
    assert "| customers | 500 × 8 | 4 |" in (tmp_path / "README.md").read_text()


def test_a_drawn_table_has_text_and_numbers_and_is_the_same_again():
    table, cluster = mixed.drawn(7)
    assert len(table) == len(cluster) == mixed.ROWS
    assert {values.dtype == object for values in map(values_of, (table[name] for name in table))} == {True, False}
    again, _ = mixed.drawn(7)
    assert table.equals(again)


def test_values_are_drawn_by_their_shares():
    shares = np.tile([0.2, 0.5, 0.3], (4_000, 1))
    values = mixed._values(np.random.default_rng(0), shares)
    for i, share in enumerate(shares[0]):
        assert abs((values == f"value {i}").mean() - share) < 0.03


def test_shared_axes_are_better_than_one_column_per_value(tmp_path):
    record = mixed.BENCHMARK.run(output=tmp_path, only=["table 1000"])
    assert json.loads((tmp_path / "mixed.json").read_text())["ari"] == record["ari"]
    assert record["ari"]["shared axes"][0] > record["ari"]["one column per value"][0]
    assert "| shared axes |" in (tmp_path / "README.md").read_text()


def test_a_few_given_labels_help_and_are_numbered_without_a_gap(tmp_path, monkeypatch):
    monkeypatch.setattr(constraints, "tables", list)
    record = constraints.BENCHMARK.run(output=tmp_path, only=["iris"])
    assert {row["method"]: row["difference"] > 0 for row in record["rows"]}["zero-shot"]
    assert "zero-shot: +" in (tmp_path / "README.md").read_text()
    y = constraints.known(np.repeat([0, 4, 9], 100), 0)
    assert (y >= 0).sum() == 15
    assert set(y) == set(range(-1, y.max() + 1))


def test_real_tables_are_those_of_the_fold_that_was_kept_aside(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    for number in range(6):
        groups = rng.integers(2, size=60)
        x = rng.normal(size=(60, 2)) * (1 + number) + 8 * (1 + number) * groups[:, None]
        pd.DataFrame(x, columns=["a", "b"]).assign(**{"class": groups}).to_csv(tmp_path / f"t{number}.csv", index=False)
    monkeypatch.setattr(real_tables, "CORPUS", str(tmp_path))
    folds = {one.table: one.fold for one in real_tables.read_corpus(str(tmp_path))}
    fold = min(folds.values())
    monkeypatch.setattr(real_tables, "FOLD", fold)
    record = real_tables.BENCHMARK.run(quick=True, output=tmp_path / "out")
    assert record["tables"] == min(3, list(folds.values()).count(fold))
    assert record["given"]["k-means"]["ari"] == 1
    assert record["given"][real_tables.HELD_OUT]["ari"] == 1
    assert record["unknown"][real_tables.BEFORE]["ours_less"] == pytest.approx([0, 0, 0], abs=0.5)
    assert json.loads((tmp_path / "out/real_tables.json").read_text())["tables"] == record["tables"]
    assert "| HDBSCAN |" in (tmp_path / "out/README.md").read_text()
    assert (tmp_path / "out/calibration.png").stat().st_size > 1000


def test_the_calibration_of_an_index_that_is_too_high_lowers_it_and_errs_less():
    expected = np.linspace(0.1, 0.9, 40)
    found = real_tables.calibration(expected, expected**2)
    assert found["shift"] < 0
    assert found["left_out"] < found["as_it_is"] < found["constant"]
