import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

from coterie.zeroshot.inference import Reading, nearest, neighbours_mean
from coterie.zeroshot.labels import agreement, cuts, mean_affinity, partition

FLAT = np.full(16, 1 / 16)
AGREEMENT_ALONE = (0.0, 20.0, 0.0, 0.0, 0.0)


def blocks(sizes, inside=0.9, outside=0.1):
    labels = np.repeat(np.arange(len(sizes)), sizes)
    return np.where(labels[:, None] == labels, inside, outside), labels


def reading(p):
    return Reading(p, np.zeros(len(p)), FLAT)


@pytest.mark.parametrize("sizes", [[10, 10], [30, 5, 12], [8, 8, 8, 8, 8]])
def test_blocks_of_high_affinity_are_the_clusters_and_their_number_is_found(sizes):
    p, labels = blocks(sizes)
    found = partition(reading(p), None, AGREEMENT_ALONE)
    assert found.n_clusters == len(sizes)
    assert adjusted_rand_score(labels, found.labels_N) == 1
    np.testing.assert_allclose(found.proba_NK.sum(axis=1), 1)
    assert found.clusters_proba.sum() == pytest.approx(1)


def test_one_cluster_is_an_answer():
    p, _ = blocks([20])
    assert partition(reading(p), None, AGREEMENT_ALONE).n_clusters == 1


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**31), st.integers(2, 40), st.integers(1, 40))
def test_a_given_number_of_clusters_is_kept(seed, n, k):
    raw = np.random.default_rng(seed).uniform(size=(n, n))
    p = (raw + raw.T) / 2
    found = partition(reading(p), min(k, n), AGREEMENT_ALONE)
    assert np.unique(found.labels_N).tolist() == list(range(min(k, n)))


def test_cuts_are_nested_in_number():
    p, _ = blocks([5, 6, 7])
    assert [len(np.unique(labels)) for labels in cuts(p, 6)] == [1, 2, 3, 4, 5, 6]


def test_mean_affinity_leaves_the_point_itself_out():
    p = np.array([[0.0, 0.8, 0.2], [0.8, 0.0, 0.4], [0.2, 0.4, 0.0]])
    found = mean_affinity(p, np.array([0, 0, 1]))
    np.testing.assert_allclose(found, [[0.8, 0.2], [0.8, 0.4], [0.3, 1.0]], atol=1e-9)


def test_agreement_by_hand():
    p, labels = blocks([1, 1], inside=1.0, outside=0.5)
    log_same, log_apart = np.log(p), np.log(np.maximum(1 - p, 1e-4))
    assert agreement(log_same, log_apart, labels) == pytest.approx(np.log(0.5) / 2)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 12), st.integers(1, 5))
def test_nearest_is_what_sorting_gives(seed, m, count):
    rng = np.random.default_rng(seed)
    rows, context = rng.normal(size=(9, 3)), rng.normal(size=(m, 3))
    sq = ((rows[:, None] - context) ** 2).sum(axis=2)
    index, found = nearest(rows, context, count)
    np.testing.assert_array_equal(index, np.argsort(sq, axis=1)[:, :count])
    np.testing.assert_allclose(found, np.sort(sq, axis=1)[:, :count])


def test_a_row_of_the_context_gets_its_own_value():
    context = np.array([[0.0], [1.0], [1.0], [2.0]])
    values = np.array([[0.0], [2.0], [4.0], [9.0]])
    assert neighbours_mean(context, context, values)[:, 0].tolist() == [0.0, 3.0, 3.0, 9.0]
    assert neighbours_mean(np.array([[0.5]]), context[:2], values[:2])[0, 0] == pytest.approx(1.0)
