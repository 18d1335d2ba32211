from coterie_research.benchmarks import calls


def test_the_calls_of_a_small_table_are_measured_and_told(tmp_path, monkeypatch):
    X = calls._rows(200, 3, 4)
    monkeypatch.setattr(calls, "PATIENCE", 0.0)
    monkeypatch.setattr(calls, "lines", lambda quick: calls._of_kmeans("200×3, 4", X, X[:4].copy()))
    result = calls.run(quick=True, output=tmp_path)
    assert [row["call"].split()[0] for row in result["lines"]] == [
        "fit",
        "fit",
        "predict",
        "transform",
        "score",
        "partial_fit",
    ]
    assert abs(result["lines"][0]["inertia_ratio"] - 1) < 1e-5
    assert "| transform 200×3, 4 |" in (tmp_path / "calls.md").read_text()
