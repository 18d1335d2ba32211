"""Real tables beside other methods, on a small corpus."""

import json

import numpy as np
import pandas as pd

from coterie_research.benchmarks import real_tables


def test_the_benchmark_compares_on_the_fold_that_was_kept_aside(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    for number in range(6):
        groups = rng.integers(2, size=60)
        x = rng.normal(size=(60, 2)) * (1 + number) + 8 * (1 + number) * groups[:, None]
        pd.DataFrame(x, columns=["a", "b"]).assign(**{"class": groups}).to_csv(tmp_path / f"t{number}.csv", index=False)
    monkeypatch.setattr(real_tables, "CORPUS", str(tmp_path))
    tables = {one.table: one.fold for one in real_tables.read_corpus(str(tmp_path))}
    fold = min(tables.values())
    monkeypatch.setattr(real_tables, "FOLD", fold)
    result = real_tables.run(quick=True, output=tmp_path / "out")
    assert result["tables"] == min(3, list(tables.values()).count(fold))
    assert result["given"]["k-means"]["ari"] == 1
    assert result["given"][real_tables.HELD_OUT]["ari"] == 1
    assert json.loads((tmp_path / "out/real_tables.json").read_text())["tables"] == result["tables"]
    assert "| HDBSCAN |" in (tmp_path / "out/README.md").read_text()
    assert (tmp_path / "out/calibration.png").stat().st_size > 1000
