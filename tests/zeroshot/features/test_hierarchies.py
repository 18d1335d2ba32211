import numba  # noqa: F401 (with it, compiled functions run)
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.cluster.hierarchy import cophenet, fcluster, linkage
from scipy.spatial.distance import pdist, squareform

from coterie.zeroshot.features.hierarchies import (
    GINI_LIMIT,
    cut,
    hierarchies,
    join_edges,
    joining_merge,
    shortest_tree,
    ward,
)


def distances(seed, n=40, dims=3):
    return squareform(pdist(np.random.default_rng(seed).normal(size=(n, dims))))


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**31), st.integers(2, 30))
def test_the_joining_merge_has_single_linkages_cophenetic_height(seed, n):
    distance = distances(seed, n)
    single = hierarchies(distance, [])[0]
    merge, _ = joining_merge(single.left, single.right)
    expected = squareform(cophenet(linkage(squareform(distance), "single")))
    found = np.where(np.eye(n, dtype=bool), 0.0, single.height[merge])
    np.testing.assert_allclose(found, expected)


def test_ward_is_scipys():
    distance = distances(1)
    ward = hierarchies(distance, [])[2]
    merge, _ = joining_merge(ward.left, ward.right)
    expected = squareform(cophenet(linkage(squareform(distance), "ward")))
    np.testing.assert_allclose(np.where(np.eye(40, dtype=bool), 0.0, ward.height[merge]), expected)


def test_core_distances_lengthen_the_edges_of_sparse_points():
    distance = np.abs(np.subtract.outer([0.0, 1.0, 2.0], [0.0, 1.0, 2.0]))
    _, _, length = shortest_tree(distance, np.array([5.0, 0.0, 0.0]))
    assert length.tolist() == [1.0, 5.0]


def test_sides_of_every_merge_add_up_to_the_set():
    single = hierarchies(distances(2), [])[0]
    _, side = joining_merge(single.left, single.right)
    assert side[-1].sum() == 40
    assert side.min() >= 1


def clusters(tree, k, n):
    table = np.column_stack([tree.left, tree.right, np.arange(n - 1.0), np.zeros(n - 1)])
    return fcluster(table, k, "maxclust")


def test_genie_does_not_leave_an_outlier_alone_where_single_linkage_does():
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.normal(size=(30, 2)), rng.normal(size=(30, 2)) + 8, [[40.0, 40.0]]])
    trees = hierarchies(squareform(pdist(points)), [])
    assert sorted(np.bincount(clusters(trees[0], 2, 61))[1:]) == [1, 60]
    assert sorted(np.bincount(clusters(trees[1], 2, 61))[1:]) == [30, 31]


def test_without_a_limit_edges_join_in_the_order_of_length():
    a, b, length = shortest_tree(distances(3), np.zeros(40))
    assert join_edges(a, b, length, 1.0)[2].tolist() == length.tolist()
    assert join_edges(a, b, length, GINI_LIMIT)[2].sum() == pytest.approx(length.sum())


def same(function, *given):
    """The results of array operations, which must be those of the compiled function bit for bit."""
    found = function.__wrapped__(*given)
    for one, other in zip(found, function(*given)):
        np.testing.assert_array_equal(one, other)
    return found


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**31), st.integers(2, 60), st.booleans())
def test_array_operations_do_what_the_kernels_do(seed, n, ties):
    rng = np.random.default_rng(seed)
    points = rng.integers(0, 4, size=(n, 2)).astype(float) if ties else rng.normal(size=(n, 2))
    distance = squareform(pdist(points))
    for core in (np.zeros(n), np.sort(distance, axis=1)[:, min(4, n - 1)]):
        edges = same(shortest_tree, distance, core)
        for limit in (1.0, GINI_LIMIT):
            same(join_edges, *edges, limit)


@pytest.mark.parametrize("n_clusters", [1, 2, 7, 40])
def test_a_cut_is_scipys_and_numbers_clusters_by_their_first_points(n_clusters):
    tree = ward(distances(4))
    labels = cut(tree.left, tree.right, n_clusters)
    assert len(set(zip(labels, clusters(tree, n_clusters, 40)))) == n_clusters
    assert [np.flatnonzero(labels == k)[0] for k in range(n_clusters)] == sorted(
        set(np.unique(labels, return_index=True)[1])
    )
