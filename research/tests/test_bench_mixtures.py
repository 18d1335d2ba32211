import numpy as np
import pytest

from coterie_research.benchmarks import mixtures


@pytest.mark.parametrize("family", mixtures.FAMILIES)
def test_a_drawn_mixture_is_the_same_again_and_has_noise_only_in_its_family(family):
    X, labels, held_out, _ = mixtures.drawn(family, 3)
    np.testing.assert_array_equal(X, mixtures.drawn(family, 3).X)
    assert len(X) == len(held_out) == len(labels) == mixtures.ROWS
    assert (labels < 0).mean() == pytest.approx(0.1 if family == "noise" else 0.0, abs=0.05)


def test_calibration_is_zero_where_certainty_is_the_share_of_right_labels():
    labels, truth = np.zeros(100, dtype=int), (np.arange(100) < 20).astype(int)
    assert mixtures.calibration(labels, truth, np.full(100, 0.8)) == pytest.approx(0)
    assert mixtures.calibration(labels, truth, np.ones(100)) == pytest.approx(0.2)


def test_measured_methods_are_summarised_with_their_paired_differences():
    X, labels, held_out, _ = mixtures.drawn("full", 0)
    scores = mixtures.measure(X[:200], labels[:200], held_out, ("FlowMixture", "HDBSCAN"))
    assert "held_out" not in scores["HDBSCAN"]
    scores |= dict.fromkeys(mixtures.OURS, scores["FlowMixture"])
    rows = [{"group": "full", "name": str(i), "k": scores["HDBSCAN"]["true_k"], "scores": scores} for i in range(3)]
    found = mixtures.summary(rows)
    means = found["summary"]["full"]
    assert means["FlowMixture"]["ari"] == pytest.approx(scores["FlowMixture"]["ari"])
    assert means["FlowMixture"]["exact_k"] == (scores["FlowMixture"]["k"] == scores["FlowMixture"]["true_k"])
    gap = found["differences"]["full"]["FlowMixture - HDBSCAN"]["ari"]
    np.testing.assert_allclose(gap, means["FlowMixture"]["ari"] - means["HDBSCAN"]["ari"])
    assert "| HDBSCAN | " in "\n".join(mixtures.page(found))


@pytest.mark.parametrize("family", mixtures.FAMILIES)
def test_the_true_mixture_is_hard_to_beat(family):
    data = mixtures.drawn(family, 1)
    best = mixtures.best_possible(data)
    method = "FlowMixture, outliers='auto'"
    ours = mixtures.measure(data.X, data.labels, data.held_out, (method,))[method]
    assert best["ari"] > ours["ari"] - 0.02
    assert best["held_out"] > ours["held_out"]
