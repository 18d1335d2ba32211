import numpy as np
import pandas as pd
import pytest

from coterie import AttentionClustering, FlowMixture, KMeans, SphericalKMeans, TrimmedKMeans, ZeroShotClusterer
from coterie.selection import CRITERIA, SAMPLE_ROWS, choose_k, uneven_columns


def blobs(k, n=40, d=2, seed=0):
    rng = np.random.default_rng(seed)
    centers = 12 * rng.permutation(np.stack(np.meshgrid(*[range(3)] * d), -1).reshape(-1, d))[:k]
    return np.repeat(centers, n, axis=0) + rng.normal(size=(k * n, d))


@pytest.fixture
def kmeans():
    return KMeans(n_init=3, random_state=0)


@pytest.mark.parametrize("criterion, k", [(name, k) for name in CRITERIA for k in (3, 5) if (name, k) != ("gap", 5)])
def test_clear_clusters_are_counted(kmeans, criterion, k):
    choice = choose_k(kmeans, blobs(k), range(2, 8), criterion=criterion)
    assert choice.k == k
    assert choice.estimator.n_clusters == k
    assert [one.k for one in choice.candidates] == list(range(2, 8))
    assert not choice.at_edge


def test_the_estimator_that_was_handed_in_stays_as_it_was(kmeans):
    choice = choose_k(kmeans, blobs(3), [2, 3])
    assert not hasattr(kmeans, "labels_")
    assert choice.estimator is not kmeans


@pytest.mark.parametrize("shape", ["uniform", "normal"])
def test_the_gap_finds_one_cluster_where_there_is_no_structure(kmeans, shape):
    answers = [
        choose_k(kmeans, getattr(np.random.default_rng(seed), shape)(size=(150, 2)), [1, 2, 3], criterion="gap").k
        for seed in range(3)
    ]
    assert answers.count(1) >= 2


def test_the_largest_k_is_reported_as_an_edge(kmeans):
    assert choose_k(kmeans, blobs(6), [2, 3, 4]).at_edge


def test_the_same_seed_gives_the_same_scores(kmeans):
    X = np.random.default_rng(0).normal(size=(SAMPLE_ROWS + 500, 1))
    first, second = (choose_k(kmeans, X, [2, 3], random_state=4) for _ in range(2))
    assert first.candidates == second.candidates


def test_outliers_are_left_out_of_the_score():
    X = np.vstack([blobs(3), np.random.default_rng(1).uniform(-40, 60, size=(8, 2))])
    choice = choose_k(TrimmedKMeans(outliers=0.07, n_init=10, init="random", random_state=0), X, range(2, 6))
    assert choice.k == 3
    assert next(one.score for one in choice.candidates if one.k == 3) > 0.8


def test_directions_are_compared_by_cosine():
    rng = np.random.default_rng(0)
    directions = np.repeat(np.eye(3), 30, axis=0) + 0.03 * rng.normal(size=(90, 3))
    X = directions * rng.uniform(0.5, 50, size=(90, 1))
    spherical = SphericalKMeans(n_init=5, random_state=0)
    assert choose_k(spherical, X, range(2, 6)).k == 3
    with pytest.raises(ValueError, match="Euclidean"):
        choose_k(spherical, X, [2, 3], criterion="gap")


def test_a_data_frame_keeps_its_names(kmeans):
    choice = choose_k(kmeans, pd.DataFrame(blobs(3), columns=["a", "b"]), [2, 3])
    assert list(choice.estimator.feature_names_in_) == ["a", "b"]


def test_every_candidate_is_told(kmeans):
    seen = []
    choice = choose_k(kmeans, blobs(2), [3, 2, 2], on_candidate=seen.append)
    assert tuple(seen) == choice.candidates
    assert choice.candidates[0].inertia > choice.candidates[1].inertia


@pytest.mark.parametrize(
    "ks, criterion, words",
    [
        ([], "silhouette", "at least one"),
        ([0, 2], "silhouette", "at least 1"),
        ([1, 2], "silhouette", "gap"),
        ([2, 80], "silhouette", "stop at 79"),
        ([2], "elbow", "silhouette, calinski-harabasz"),
    ],
)
def test_ranges_that_are_refused(kmeans, ks, criterion, words):
    with pytest.raises(ValueError, match=words):
        choose_k(kmeans, blobs(2), ks, criterion=criterion)


@pytest.mark.parametrize("ks", [5, "2..5", [2.5, 3]])
def test_numbers_of_clusters_that_are_no_integers_are_refused(kmeans, ks):
    with pytest.raises(TypeError, match=r"for example range\(2, 13\)"):
        choose_k(kmeans, blobs(2), ks)


def test_an_estimator_without_a_number_of_clusters_is_refused():
    with pytest.raises(ValueError, match="FlowMixture has no parameter n_clusters"):
        choose_k(FlowMixture(), blobs(2), [2, 3])


def test_the_gap_is_refused_for_directions_and_for_gaps_in_the_table(kmeans):
    with pytest.raises(ValueError, match="Euclidean"):
        choose_k(AttentionClustering("lloyd/spherical"), blobs(2), [2], criterion="gap")
    with pytest.raises(ValueError, match="complete rows"):
        choose_k(kmeans, np.where(blobs(2) > 1, np.nan, blobs(2)), [2], criterion="gap")


@pytest.mark.parametrize(
    ("estimator", "factors", "warned"),
    [
        (KMeans(2), [1, 1], False),
        (KMeans(2), [1, 100], True),
        (SphericalKMeans(2), [1, 100], False),
        (ZeroShotClusterer(), [1, 100], False),
    ],
)
def test_columns_of_uneven_scale_are_seen_where_they_matter(estimator, factors, warned):
    X = np.random.default_rng(0).normal(size=(80, 2)) * factors
    uneven = uneven_columns(estimator.fit(X), X)
    assert (uneven is not None) == warned
    assert not warned or (uneven.widest, uneven.narrowest) == (1, 0)


def test_a_few_distant_rows_of_a_large_table_do_not_choose_the_number():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(20_000, 2)), rng.normal(size=(20_000, 2)) + [12, 0], [[4_000, 0], [0, 4_000]]])
    choice = choose_k(KMeans(random_state=0, n_init=3), X, range(2, 7))
    assert (np.bincount(choice.estimator.labels_) > 100).sum() == 2
    assert max(one.score for one in choice.candidates) < 0.95


def test_a_sample_holds_every_cluster_that_counts():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(60_000, 2)), rng.normal(size=(90, 2)) + [30, 0]])
    choice = choose_k(KMeans(random_state=0), X, [2, 3])
    assert all(one.score > -1 for one in choice.candidates)
