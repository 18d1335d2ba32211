import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

from coterie.zeroshot.network.inference import Reading
from coterie.zeroshot.partitions import partition as partition_module
from coterie.zeroshot.partitions.number_of_clusters import Hierarchical
from coterie.zeroshot.partitions.partition import Evidence, partition

FLAT = np.full(100, 1 / 100)
HEAD = (1.0, 0.0, 0.0), (1.0, 0.0, 1.0)


def blocks(sizes, inside=0.9, outside=0.1):
    labels = np.repeat(np.arange(len(sizes)), sizes)
    return np.where(labels[:, None] == labels, inside, outside), labels


def of(found, n_clusters, head=()):
    points = np.arange(len(found.affinity_NN))[:, None]
    children = np.column_stack([found.tree.left, found.tree.right])
    read = points, found.affinity_NN, found.noise_N, children, found.clusters_proba, np.array(head)
    return partition(Evidence(*read), n_clusters)


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


def test_another_candidate_may_be_chosen_and_has_the_index_that_it_is_chosen_for(monkeypatch):
    monkeypatch.setattr(partition_module, "best_candidate", lambda *given: (1 - given[-1], 0.5))
    p, _ = blocks([4, 4])
    found = Hierarchical(reading(p, np.r_[0.2, np.full(99, 0.8 / 99)]), *HEAD)
    chosen = of(found, 2, head=[1.0])
    np.testing.assert_array_equal(chosen.labels_N, 1 - of(found, 2).labels_N)
    assert chosen.expected_ari == pytest.approx(0.8 * 0.5)


def test_equal_rows_share_a_cluster_however_many_clusters_are_asked_for():
    p, _ = blocks([4, 4])
    found = Hierarchical(reading(p), *HEAD)
    children = np.column_stack([found.tree.left, found.tree.right])
    points = np.repeat([[0.0], [1.0], [5.0], [6.0]], 2, axis=0)
    made = partition(Evidence(points, p, np.zeros(8), children, found.clusters_proba, np.zeros(0)), 7)
    assert made.proba_NK.shape[1] == 4
    np.testing.assert_array_equal(made.labels_N[::2], made.labels_N[1::2])


def test_the_least_noisy_rows_of_a_cluster_are_no_outliers():
    p, _ = blocks([3, 3])
    found = Hierarchical(reading(p), *HEAD)
    noise = np.array([0.9, 0.8, 0.9, 0.1, 0.1, 0.9])
    made = of(found, 2)
    labels, proba = type(made)(made.points_ND, p, noise, made.proba_NK, 0.5).label(made.points_ND)
    np.testing.assert_array_equal(labels, [-1, made.labels_N[1], -1, *made.labels_N[3:5], -1])
    np.testing.assert_allclose(proba.sum(axis=1), 1)
