import pytest

from coterie_research.benchmarks import kmedoids as benchmark


@pytest.mark.slow
def test_inertia_is_within_one_percent_of_fasterpam(tmp_path):
    result = benchmark.run(quick=True, output=tmp_path)
    assert len(result["rows"]) == 10
    assert result["mean_ratio"] <= 1.01
    assert (tmp_path / "README.md").read_text().count("\n| ") >= 11
