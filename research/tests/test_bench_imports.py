"""The start-up benchmark, and the limit that it must keep."""

from coterie_research.benchmarks import imports


def test_k_means_starts_with_little_more_memory_than_scikit_learns(tmp_path):
    record = imports.run(quick=True, output=tmp_path)
    ours, theirs = record["rows"]["coterie"], record["rows"]["scikit-learn"]
    assert ours["import, MB"] <= 1.2 * theirs["import, MB"]
    assert ours["loads"] == []  # a small fit needs no compiled code either
    assert "| coterie |" in imports.markdown(record)
    assert (tmp_path / "imports.json").exists()
