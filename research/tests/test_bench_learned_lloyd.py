from coterie_research.benchmarks import learned_lloyd as benchmark


def test_the_benchmark_says_what_it_left_out(tmp_path, monkeypatch):
    monkeypatch.delenv("COTERIE_DATA", raising=False)
    benchmark._TABLES.clear()
    result = benchmark.run(quick=True, output=tmp_path)
    assert {row["kind"] for row in result["rows"]} == {"blobs", "uniform"}
    assert "COTERIE_DATA" in result["missing"][0]
    assert all(row["ratio"] < 1 for row in result["rows"])
