import json

import numpy as np
import pandas as pd

from coterie.tables.table import Table, read_table
from coterie_research.benchmarks import tables
from coterie_research.benchmarks._table_sets import SETS


def test_every_table_can_be_read_and_has_a_source_and_its_groups(tmp_path):
    assert len(SETS) >= 15
    for one in SETS:
        frame = read_table(one.make(tmp_path))
        assert one.source
        assert one.label is None or one.label in frame.columns
        used = [column for column in Table.of(frame).read_columns() if column.used]
        assert len(used) > 1, one.name


def test_no_identifier_row_number_or_constant_is_used(tmp_path):
    wrong = {"customer_id", "email", "Lfd.Nr.", "row", "patient", "serial", "time", "plant", "note", "id", "name"}
    wrong |= {"(unnamed)", "Sample Number", "Individual ID", "Region", "Stage"}
    for one in SETS:
        read = Table.of(read_table(one.make(tmp_path))).read_columns()
        assert not wrong & {column.name for column in read if column.used}, one.name


def test_the_usual_pipeline_gives_finite_numbers():
    frame = pd.DataFrame({"a": [1, None, 3], "b": ["x", None, "y"], "c": pd.to_datetime(["2024-01-01"] * 3), "d": None})
    assert np.isfinite(tables.usual_pipeline(frame)).all()


def test_the_benchmark_writes_what_it_measured(tmp_path):
    result = tables.run(quick=True, output=tmp_path)
    assert json.loads((tmp_path / "tables.json").read_text())["mean_ari"] == result["mean_ari"]
    assert result["mean_ari"]["zero-shot"] > result["mean_ari"]["HDBSCAN"]
    assert "| customers | 500 × 8 | 4 |" in (tmp_path / "README.md").read_text()
