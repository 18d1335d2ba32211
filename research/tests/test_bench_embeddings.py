import numpy as np
import pytest

from coterie_research.benchmarks import embeddings


def test_rows_without_a_cluster_count_as_one_group():
    truth = np.repeat([0, 1], 50)
    found = embeddings._scored(truth, lambda: np.where(np.arange(100) < 80, truth, -1))
    assert found["k"] == 2
    assert found["noise"] == pytest.approx(0.2)
    assert found["ari"] < 1


def test_a_set_is_measured_with_and_without_the_number_and_summed_up(monkeypatch):
    rng = np.random.default_rng(0)
    truth = rng.integers(4, size=240)
    X = 2 * rng.normal(size=(4, 20))[truth] + rng.normal(size=(240, 20))
    monkeypatch.setattr(embeddings, "SETS", {"small": lambda: (X, truth)})
    monkeypatch.setattr(embeddings, "UNKNOWN", {})
    row = embeddings.measure("small", range(2))
    assert row["groups"] == row["methods"][embeddings.GIVEN]["k"] == 4
    assert row["methods"][embeddings.OURS]["ks"] == [4, 4]
    told = embeddings.summary([row])
    assert told["means"][embeddings.OURS]["near"] == 1
    assert told["means"][embeddings.OURS]["ari"] > 0.9
    assert "| small | 240 × 20 | 4 |" in "\n".join(embeddings.page({**told, "rows": [row]}))
