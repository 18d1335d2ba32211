"""The graph of nearest neighbours and its partition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse
from sklearn.datasets import make_blobs, make_circles
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import NearestNeighbors

from coterie import starts
from coterie.geometry import neighbour_kernels, neighbours


@settings(max_examples=25, deadline=None)
@given(arrays(np.float32, st.tuples(st.integers(3, 40), st.integers(1, 5)), elements=st.floats(-50, 50, width=32)))
def test_nearest_distances_are_those_of_scikit_learn(X):
    k = min(4, len(X) - 1)
    indices, distances = neighbours.nearest(X, k)
    expected = NearestNeighbors(n_neighbors=k).fit(X).kneighbors()[0]
    np.testing.assert_allclose(distances, expected, atol=0.05, rtol=1e-3)
    assert (indices != np.arange(len(X))[:, None]).all()


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**31), st.booleans())
def test_array_operations_find_the_neighbours_that_the_kernels_find(seed, ties):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, size=(30, 4)).astype(np.float32) if ties else rng.normal(size=(30, 4)).astype(np.float32)
    found = []
    for of in (neighbours._select_smallest.__wrapped__, neighbour_kernels._select_smallest):
        indices, scores = np.zeros((20, 6), np.int32), np.empty((20, 6), np.float32)
        of(X[5:25] @ X.T, 0.5 * (X**2).sum(axis=1), 5, indices, scores)
        found.append((indices, scores))
    np.testing.assert_array_equal(*[indices for indices, _ in found])
    np.testing.assert_array_equal(*[scores for _, scores in found])
    X, candidates, sorted_by = X.astype(np.float64), found[0][0], []
    for of in (neighbours._sort_candidates.__wrapped__, neighbour_kernels._sort_candidates):
        sorted_by.append((np.empty((20, 4), np.int64), np.empty((20, 4))))
        of(X[5:25], X, candidates, *sorted_by[-1])
    np.testing.assert_array_equal(*[indices for indices, _ in sorted_by])
    np.testing.assert_array_equal(*[sq for _, sq in sorted_by])


def test_more_threads_find_the_same_neighbours():
    X = np.random.RandomState(0).randn(1500, 6)
    for one, two in zip(neighbours.nearest(X, 5, 1), neighbours.nearest(X, 5, 3)):
        np.testing.assert_array_equal(one, two)


def test_the_graph_is_symmetric_and_every_rows_own_weights_sum_to_log2_k():
    X = np.random.RandomState(0).randn(200, 3)
    indices, distances = neighbours.nearest(X, 8)
    graph = neighbours.fuzzy_graph(indices, distances)
    assert abs(graph - graph.T).max() < 1e-12
    assert graph.max() <= 1 + 1e-12
    assert (np.asarray(graph.sum(axis=1)).ravel() >= np.log2(8) - 1e-6).all()


def test_communities_of_two_cliques_with_a_bridge_are_the_cliques():
    clique = np.ones((5, 5)) - np.eye(5)
    dense = np.block([[clique, np.zeros((5, 5))], [np.zeros((5, 5)), clique]])
    dense[4, 5] = dense[5, 4] = 1
    labels = neighbours.communities(sparse.csr_matrix(dense), 1.0, np.arange(10))
    assert (labels == labels[0]).tolist() == [True] * 5 + [False] * 5


def test_merging_takes_linked_pairs_before_small_ones_far_away():
    """A chain a-b of two large nodes with a thin link, and two small nodes c, d without any: a and b are one."""
    dense = np.diag([100.0, 100.0, 1.0, 1.0])
    dense[0, 1] = dense[1, 0] = 2.0
    merged = neighbours.merged(sparse.csr_matrix(dense), np.arange(4), 3)
    assert merged[0] == merged[1]
    assert len(set(merged.tolist())) == 3


@pytest.mark.parametrize("n_clusters", [2, 5, 9])
def test_a_partition_has_as_many_clusters_as_asked_for(n_clusters):
    X = np.random.RandomState(1).randn(60, 2)
    labels = neighbours.partition(neighbours.graph_of(X), n_clusters, np.random.RandomState(0))
    assert sorted(set(labels.tolist())) == list(range(n_clusters))


def test_circles_within_circles_are_found():
    X, truth = make_circles(800, noise=0.04, factor=0.5, random_state=0)
    assert adjusted_rand_score(truth, neighbours.partition(neighbours.graph_of(X), 2, np.random.RandomState(0))) == 1


def _clusters(X, k: int) -> np.ndarray:
    graph, node_of_row = starts.neighbour_graph(X)
    return neighbours.partition(graph, k, np.random.RandomState(0))[node_of_row]


def test_the_clusters_do_not_depend_on_the_order_of_the_rows():
    X, _ = make_blobs(300, centers=4, n_features=60, random_state=0)
    order = np.random.RandomState(0).permutation(300)
    np.testing.assert_array_equal(_clusters(X, 4)[order], _clusters(X[order], 4))


def test_equal_rows_are_one_node_and_share_their_cluster():
    X = np.repeat(np.random.RandomState(0).randn(20, 2), 30, axis=0)
    labels = _clusters(X, 3).reshape(20, 30)
    assert (labels == labels[:, :1]).all()


def test_the_graph_does_not_depend_on_the_scale_of_the_rows():
    """Single-precision squares overflow at 1e20, and neighbours were then read from memory that nobody had written."""
    X = make_blobs(60, centers=3, random_state=0)[0]
    plain = neighbours.graph_of(X)
    for factor in (2.0**66, 2.0**-66, 2.0**1010, 2.0**-900):
        scaled = neighbours.graph_of(X * factor)
        np.testing.assert_array_equal(scaled.indices, plain.indices)
        np.testing.assert_allclose(scaled.data, plain.data, rtol=1e-6)
    with pytest.raises(ValueError, match="NaN or infinity"):
        neighbours.graph_of(np.full((20, 2), np.nan))


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 12), st.integers(1, 5))
def test_the_nearest_of_other_rows_are_what_sorting_gives(seed, m, count):
    rng = np.random.default_rng(seed)
    rows, context = rng.normal(size=(9, 3)), rng.normal(size=(m, 3))
    sq = ((rows[:, None] - context) ** 2).sum(axis=2)
    index, found = neighbours.nearest_among(rows, context, count)
    np.testing.assert_array_equal(index, np.argsort(sq, axis=1)[:, :count])
    np.testing.assert_allclose(found, np.sort(sq, axis=1)[:, :count])


def test_the_nearest_of_a_row_do_not_depend_on_the_other_rows():
    rng = np.random.default_rng(0)
    rows, context = np.round(2 * rng.normal(size=(700, 5))), np.round(2 * rng.normal(size=(90, 5)))  # many are equal
    together = neighbours.nearest_among(rows, context, 6)
    for i in (0, 511, 512, 699):
        for one, of_all in zip(neighbours.nearest_among(rows[i : i + 1], context, 6), together):
            np.testing.assert_array_equal(one[0], of_all[i])
    far = neighbours.nearest_among(np.full((1, 5), 1e200), context, 6)[0]
    assert len(np.unique(far)) == 6
