import numpy as np
import pytest
from scipy import sparse

from coterie.kmeans.refill import refill
from coterie.kmeans.statistics import Statistics


def statistics(X, labels, sq_distances, k, sample_weight=None):
    s = Statistics.of(X, labels, sq_distances, k, sample_weight)
    return s.sums, s.counts


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_matrix])
def test_the_farthest_rows_fill_the_empty_clusters_in_order(convert):
    X = convert(np.array([[0.0, 1], [0, 2], [0, 9], [0, 30], [5, 0]]))
    labels, sq_distances = np.array([0, 0, 0, 0, 2]), np.array([1.0, 4, 81, 900, 0])
    sums, counts = statistics(X, labels, sq_distances, 4)
    assert refill(X, labels, sq_distances, sums, counts)
    np.testing.assert_array_equal(sums, [[0, 3], [0, 30], [5, 0], [0, 9]])
    np.testing.assert_array_equal(counts, [2, 1, 1, 1])


def test_equal_rows_move_together_as_one_row_of_their_weight():
    X = np.array([[1.0], [7], [7], [2]])
    labels, sq_distances = np.zeros(4, int), np.array([1.0, 49, 49, 4])
    sums, counts = statistics(X, labels, sq_distances, 2)
    refill(X, labels, sq_distances, sums, counts)
    weighted = statistics(X[[0, 1, 3]], labels[:3], sq_distances[[0, 1, 3]], 2, np.array([1.0, 2, 1]))
    refill(X[[0, 1, 3]], labels[:3], sq_distances[[0, 1, 3]], *weighted, np.array([1.0, 2, 1]))
    np.testing.assert_array_equal(sums, weighted[0])
    np.testing.assert_array_equal(counts, weighted[1])
    assert counts.tolist() == [2, 2]


def test_a_tie_between_different_rows_goes_to_the_lexicographically_first_whatever_the_order():
    X = np.array([[3.0, 0], [-3, 0], [0, 3], [0, 0]])
    for order in ([0, 1, 2, 3], [2, 1, 3, 0], [3, 0, 2, 1]):
        rows = X[order]
        sq_distances = (rows**2).sum(1)
        sums, counts = statistics(rows, np.zeros(4, int), sq_distances, 3)
        refill(rows, np.zeros(4, int), sq_distances, sums, counts)
        np.testing.assert_array_equal(sums[1:], [[-3, 0], [0, 3]])


def test_the_last_rows_of_a_cluster_rows_at_distance_zero_and_trimmed_rows_stay():
    X = np.array([[9.0], [1], [50]])
    labels, sq_distances = np.array([0, 1, -1]), np.array([4.0, 0, 900])
    sums, counts = statistics(X, labels, sq_distances, 3)
    assert not refill(X, labels, sq_distances, sums, counts)
    assert counts.tolist() == [1, 1, 0]


def test_statistics_of_blocks_add_up_to_those_of_the_whole_and_an_empty_cluster_keeps_its_centre():
    rng = np.random.RandomState(0)
    X, labels, sq, w = rng.rand(50, 3), rng.randint(-1, 4, 50), rng.rand(50), rng.rand(50)
    whole = Statistics.of(X, labels, sq, 5, w)
    parts = Statistics.of(X[:20], labels[:20], sq[:20], 5, w[:20]) + Statistics.of(
        X[20:], labels[20:], sq[20:], 5, w[20:]
    )
    np.testing.assert_allclose(parts.sums, whole.sums, rtol=1e-13)
    np.testing.assert_allclose(parts.counts, whole.counts, rtol=1e-13)
    assert parts.inertia == pytest.approx((w * sq)[labels >= 0].sum())
    previous = np.full((5, 3), 7.0)
    np.testing.assert_array_equal(whole.centers(previous)[4], previous[4])
    own = labels == 2
    np.testing.assert_allclose(whole.centers(previous)[2], np.average(X[own], axis=0, weights=w[own]))
