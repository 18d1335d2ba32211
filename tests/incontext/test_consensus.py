import itertools

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from coterie.incontext.consensus import Rule, aligned_mean, best_partition, expected_ari, features, renamings


def soft(labels, n_clusters, rng, sharpness=3.0):
    """Membership probabilities around ``labels``, clusters in a random order."""
    logits = rng.normal(size=(len(labels), n_clusters)) + sharpness * np.eye(n_clusters)[labels]
    p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    return p[:, rng.permutation(n_clusters)]


def test_the_expected_ari_of_one_hard_member_is_its_ari():
    rng = np.random.default_rng(0)
    truth, found = rng.integers(4, size=60), rng.integers(3, size=60)
    members = np.eye(4)[truth][None]
    assert expected_ari(features(members), found, 3) == pytest.approx(adjusted_rand_score(truth, found))


def test_features_give_weighted_co_assignments():
    rng = np.random.default_rng(1)
    members = np.stack([soft(rng.integers(3, size=20), 3, rng) for _ in range(4)])
    weights = np.array([1.0, 2.0, 3.0, 4.0])
    wanted = sum(w * m @ m.T for w, m in zip(weights / 10, members))
    np.testing.assert_allclose(features(members, weights) @ features(members, weights).T, wanted)


def test_the_partition_found_has_the_largest_expected_ari_of_all():
    rng = np.random.default_rng(2)
    for _ in range(10):
        members = np.stack([soft(np.array([0, 0, 0, 1, 1, 1, 0]), 2, rng, 1.0) for _ in range(5)])
        feature = features(members)
        best = max(expected_ari(feature, np.array(z), 2) for z in itertools.product(range(2), repeat=7))
        # a climb by single moves ends in a local optimum: equal here in nearly every draw, never far below
        assert expected_ari(feature, best_partition(members), 2) > 0.9 * best


def test_no_single_move_improves_the_partition():
    rng = np.random.default_rng(3)
    members = np.stack([soft(rng.integers(3, size=30), 3, rng, 0.5) for _ in range(6)])
    feature, labels = features(members), best_partition(members)
    value = expected_ari(feature, labels, 3)
    for point, cluster in itertools.product(range(30), range(3)):
        moved = labels.copy()
        moved[point] = cluster
        assert expected_ari(feature, moved, 3) <= value + 1e-9


def test_the_mean_undoes_renamings():
    rng = np.random.default_rng(4)
    labels = np.arange(40) % 4
    members = np.stack([soft(labels, 4, rng, 5.0) for _ in range(12)])
    mean = aligned_mean(members)
    np.testing.assert_allclose(mean.sum(1), 1)
    assert adjusted_rand_score(labels, mean.argmax(1)) == 1
    assert mean.max(1).mean() > 0.9
    assert adjusted_rand_score(labels, best_partition(members)) == 1


def test_renamings_match_members_to_a_reference():
    labels = np.arange(30) % 3
    order = np.array([2, 0, 1])
    member = np.eye(3)[labels][:, order]
    found = renamings(member[None], np.eye(3)[labels])[0]
    np.testing.assert_array_equal(member[:, found], np.eye(3)[labels])


def test_a_member_of_little_weight_has_little_say():
    one, other = np.eye(2)[np.arange(20) % 2], np.eye(2)[np.arange(20) // 10]
    members = np.stack([one, other])
    assert adjusted_rand_score(one.argmax(1), best_partition(members, np.array([0.99, 0.01]))) == 1
    assert adjusted_rand_score(other.argmax(1), best_partition(members, np.array([0.01, 0.99]))) == 1


def test_the_rule_gives_the_points_of_a_clear_partition_their_labels():
    rng = np.random.default_rng(5)
    labels = np.arange(60) % 3
    members = np.stack([soft(labels, 3, rng, 4.0) for _ in range(8)])
    feature, found = features(members), best_partition(members)
    rule = Rule.of(feature, found, 3)
    np.testing.assert_array_equal(rule.labels(feature), found)
    np.testing.assert_array_equal(rule.labels(feature[:1]), found[:1])


@pytest.mark.parametrize("n_points,n_clusters", [(1, 1), (5, 1), (2, 2)])
def test_the_smallest_sets_have_a_partition(n_points, n_clusters):
    members = np.full((3, n_points, n_clusters), 1 / n_clusters)
    labels = best_partition(members)
    assert labels.shape == (n_points,)
    assert Rule.of(features(members), labels, n_clusters).labels(features(members)).shape == (n_points,)
