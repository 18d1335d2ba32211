"""The literal transformer is the plain algorithm, layer by layer."""

import itertools

import numpy as np
import pytest

from coterie.kmeans import literal, reference
from coterie.kmeans.algorithm import Algorithm
from coterie.kmeans.family import FORMS, TABLE, VARIANTS
from tests.kmeans.cases import Plain, algorithm_for, instance


@pytest.mark.parametrize("batch", range(4))
def test_literal_is_lloyd_on_100_random_instances(batch):
    """n ≤ 300, d ≤ 8, k ≤ 10, 15 layers: the same labels, and centres within 1e-12, at every layer (Theorem 1)."""
    finished, seeds = 0, itertools.count(batch, 4)
    while finished < 25:
        X, C = instance(next(seeds), most_clusters=10)
        for out in literal.layers(Algorithm(), X, C, 15):
            labels = reference.labels(X, C)
            if len(np.unique(labels)) < len(C):
                break  # an empty cluster: plain Lloyd leaves it undefined, and the instance does not count
            assert np.array_equal(out.assignments, np.eye(len(C))[labels])
            C = reference.lloyd(X, C)
            np.testing.assert_allclose(out.centers, C, rtol=0, atol=1e-12)
        else:
            finished += 1


@pytest.mark.parametrize("name", TABLE)
def test_every_row_is_its_plain_algorithm(name):
    row = TABLE[name]
    layers = 0
    for seed in range(12):
        X, C = instance(1000 + seed, row)
        plain = Plain(algorithm_for(row))
        for out in literal.layers(algorithm_for(row), X, C, 6):
            labels = plain.labels(X, C)
            if not row.variant.soft:
                if len(np.unique(labels)) < len(C):
                    break  # an empty cluster: plain algorithms leave it undefined
                assert np.array_equal(out.assignments.argmax(1), labels)
            C = plain.step(X, C)
            exact = row.variant.points != "sinkhorn"  # whose weights are a limit, known to the rounding of sums
            np.testing.assert_allclose(out.centers, C, rtol=0, atol=1e-10 if exact else 1e-6)
            layers += 1
    assert layers >= 40


def test_the_table_has_all_rows_of_the_document_and_its_stars():
    assert set(TABLE) == {v if f == "euclidean" else f"{v}/{f}" for v in VARIANTS for f in FORMS}


def test_a_point_between_two_centres_drops_out_of_both_updates():
    """The bare network's behaviour at a tie; plain Lloyd gives the point to the first."""
    X, C = np.array([[-1.0], [0.0], [1.0]]), np.array([[-1.0], [1.0]])
    (out,) = literal.layers(Algorithm(), X, C, 1)
    assert out.assignments.tolist() == [[1, 0], [0.5, 0.5], [0, 1]]
    assert out.centers.ravel().tolist() == [-1.0, 1.0]
    result = literal.run(X, C, Algorithm(), max_iter=1)
    assert result.centers.ravel().tolist() == [-0.5, 1.0]


@pytest.mark.parametrize("form", ["", "/dot"])
def test_a_tied_point_is_no_member_of_a_trimmed_cluster_either(form):
    X, C = np.array([[-2.0], [-1], [0], [1], [3]]), np.array([[-1.0], [1.0]])
    (lloyd,) = literal.layers(Algorithm(TABLE[f"lloyd{form}"]), X, C, 1)
    (trimmed,) = literal.layers(Algorithm(TABLE[f"trimmed{form}"], keep=1.0), X, C, 1)
    np.testing.assert_allclose(trimmed.centers, lloyd.centers, atol=1e-12)
    np.testing.assert_allclose(lloyd.centers.ravel(), [-1.5, 2.0], atol=1e-12)


def test_an_empty_cluster_of_the_bare_network_jumps_to_the_mean_of_all_points():
    X, C = np.array([[0.0], [1.0], [5.0]]), np.array([[0.0], [100.0]])
    (out,) = literal.layers(Algorithm(), X, C, 1)
    assert out.centers.ravel().tolist() == [2.0, 2.0]
    result = literal.run(X, C, Algorithm(), max_iter=1)  # behind estimators it takes the farthest point
    assert result.centers.ravel().tolist() == [0.5, 5.0]


def test_duplicate_points_keep_their_labels_together():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(30, 2)), rng.integers(1, 60, size=30), axis=0)
    C = X[[0, -1]].copy()
    for out in literal.layers(Algorithm(), X, C, 8):
        labels = reference.labels(X, C)
        assert np.array_equal(out.assignments, np.eye(2)[labels])
        C = reference.lloyd(X, C)
        np.testing.assert_allclose(out.centers, C, rtol=0, atol=1e-12)


def test_literal_refuses_many_points_and_says_which_engine_to_take():
    with pytest.raises(ValueError, match="engine='fused'"):
        literal.run(np.zeros((20_001, 1)), np.zeros((1, 1)), Algorithm())


def test_norm_max_with_one_gamma_is_available_too():
    X, C = instance(3, TABLE["trimmed"])
    (everything,) = literal.layers(Algorithm(TABLE["trimmed"], trim_gamma=1e-9), X, C, 1)
    plain = reference.lloyd(X, C)
    np.testing.assert_allclose(everything.centers, plain, atol=1e-10)
