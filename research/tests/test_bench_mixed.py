import json

import numpy as np

from coterie.tables.columns import values_of
from coterie_research.benchmarks import mixed


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


def test_the_benchmark_writes_what_it_measured(tmp_path):
    result = mixed.run(quick=True, output=tmp_path)
    stored = json.loads((tmp_path / "mixed.json").read_text())
    assert stored["ari"] == result["ari"]
    assert result["ari"]["shared axes"][0] > result["ari"]["one column per value"][0]
    assert "| shared axes |" in (tmp_path / "README.md").read_text()
