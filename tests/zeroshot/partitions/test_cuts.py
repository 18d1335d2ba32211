import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

from coterie.zeroshot.features.hierarchies import cut, ward
from coterie.zeroshot.network.inference import Reading, neighbours_mean
from coterie.zeroshot.partitions.cuts import (
    Hierarchical,
    choice_features,
    clusters_proba,
    expected_ari,
    mean_affinity,
    partition,
)
from coterie.zeroshot.training.choice_fitting import calibrated

FLAT = np.full(100, 1 / 100)
HEAD = (1.0, 0.0, 0.0), (1.0, 0.0, 1.0)


def blocks(sizes, inside=0.9, outside=0.1):
    labels = np.repeat(np.arange(len(sizes)), sizes)
    return np.where(labels[:, None] == labels, inside, outside), labels


def of(found, n_clusters, choose=None):
    tree, one = found.tree, found.clusters_proba[0]
    return partition(found.affinity_NN, found.noise_N, tree.left, tree.right, n_clusters, one, choose)


def reading(p, clusters=FLAT):
    return Reading(p, np.zeros(len(p)), clusters)


@pytest.mark.parametrize("sizes", [[10, 10], [30, 5, 12], [8, 8, 8, 8, 8], [3] * 40])
def test_blocks_of_high_affinity_are_the_clusters_and_their_number_is_found(sizes):
    p, labels = blocks(sizes, outside=0.0005)
    found = Hierarchical(reading(p), *HEAD)
    assert found.best == len(sizes)
    cut_there = of(found, found.best)
    assert adjusted_rand_score(labels, cut_there.labels_N) == 1
    np.testing.assert_allclose(cut_there.proba_NK.sum(axis=1), 1)
    assert found.clusters_proba.sum() == pytest.approx(1)


def test_one_cluster_is_the_answer_if_it_is_expected_to_agree_better_than_several():
    p, _ = blocks([10, 10], inside=0.55, outside=0.45)
    for one, best in ((0.02, 2), (0.3, 1)):
        found = Hierarchical(reading(p, np.r_[one, np.full(99, (1 - one) / 99)]), *HEAD)
        assert found.best == best
        assert of(found, 1).expected_ari == pytest.approx(one)
        assert of(found, 2).expected_ari == pytest.approx((1 - one) * found.expected_ari[1])
    assert Hierarchical(reading(p, np.r_[0.3, np.full(99, 0.7 / 99)]), HEAD[0], (1.0, 0.0, 0.0)).best > 1


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**31), st.integers(2, 40), st.integers(1, 40))
def test_a_given_number_of_clusters_is_kept(seed, n, k):
    raw = np.random.default_rng(seed).uniform(size=(n, n))
    found = of(Hierarchical(reading((raw + raw.T) / 2), *HEAD), min(k, n))
    assert np.unique(found.labels_N).tolist() == list(range(min(k, n)))


def test_the_expected_index_of_certain_affinities_is_the_index():
    rng = np.random.default_rng(0)
    truth = rng.integers(4, size=30)
    p = (truth[:, None] == truth).astype(float)
    distance = np.abs(rng.normal(size=(30, 30)))
    tree = ward(np.triu(distance, 1) + np.triu(distance, 1).T)
    realised = [adjusted_rand_score(truth, labels) for labels in (cut(tree.left, tree.right, k) for k in range(1, 13))]
    np.testing.assert_allclose(expected_ari(p, tree.left, tree.right, 12), realised, atol=1e-12)


def test_other_labels_may_be_chosen_and_have_the_index_that_they_are_chosen_for():
    p, _ = blocks([4, 4])
    found = Hierarchical(reading(p, np.r_[0.2, np.full(99, 0.8 / 99)]), *HEAD)
    chosen = of(found, 2, lambda given: (1 - given, 0.5))
    np.testing.assert_array_equal(chosen.labels_N, 1 - of(found, 2).labels_N)
    np.testing.assert_array_equal(chosen.proba_NK.argmax(axis=1), chosen.labels_N)
    assert chosen.expected_ari == pytest.approx(0.8 * 0.5)


def test_evidence_for_a_number_of_clusters_by_hand():
    found = choice_features(np.array([0.5, 0.0, 0.2]), np.array([0.0, 0.8, 0.4]))
    np.testing.assert_allclose(found, [[np.log(1e-4), 0.8, np.log(2)], [np.log(0.2), 0.4, np.log(3)]])


def test_one_cluster_has_the_calibrated_probability_that_the_network_gives_it():
    given = np.array([0.4, 0.1, 0.5]), np.array([0.0, 0.8, 0.4]), (0.0, 0.0, 1.0)
    np.testing.assert_allclose(clusters_proba(*given, (1.0, 0.0, 1.0)), [0.4, 0.6 * 2 / 5, 0.6 * 3 / 5])
    odds = (0.4 / 0.6) ** 0.5 * np.exp(-1)
    assert clusters_proba(*given, (0.5, -1.0, 1.0))[0] == pytest.approx(odds / (1 + odds))


def test_a_calibrated_logit_is_right_as_often_as_it_says():
    rng = np.random.default_rng(0)
    logits = 2 * rng.normal(size=4_000)
    true = rng.random(4_000) < 1 / (1 + np.exp(1 - 0.5 * logits))
    factor, shift = calibrated(logits, true, share=true.mean())
    assert factor == pytest.approx(0.5, abs=0.1)
    assert shift == pytest.approx(-1, abs=0.15)


def test_mean_affinity_leaves_the_point_itself_out():
    p = np.array([[0.0, 0.8, 0.2], [0.8, 0.0, 0.4], [0.2, 0.4, 0.0]])
    found = mean_affinity(p, np.array([0, 0, 1]))
    np.testing.assert_allclose(found, [[0.8, 0.2], [0.8, 0.4], [0.3, 1.0]], atol=1e-9)


def test_a_row_of_the_context_gets_its_own_value():
    context = np.array([[0.0], [1.0], [1.0], [2.0]])
    values = np.array([[0.0], [2.0], [4.0], [9.0]])
    assert neighbours_mean(context, context, values)[:, 0].tolist() == [0.0, 3.0, 3.0, 9.0]
    assert neighbours_mean(np.array([[0.5]]), context[:2], values[:2])[0, 0] == pytest.approx(1.0)
