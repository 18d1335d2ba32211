import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.metrics import adjusted_rand_score

from coterie.zeroshot.network.head import HEAD, flattened, scores, shapes, unflattened, width_of
from coterie.zeroshot.network.numpy_operations import Arrays
from coterie.zeroshot.partitions.candidates import Candidates, best_candidate, describe
from coterie.zeroshot.partitions.cuts import agreement

FLAT = np.full(20, 1 / 20)
IN_TURN = np.arange(60) % 2
WIDTH = 8  # of heads


def two_lines(n=30):
    """Two parallel lines of points: connected, and longer than they are apart."""
    along = np.linspace(0, 10, n)
    points = np.concatenate([np.column_stack([along, np.zeros(n)]), np.column_stack([along, np.full(n, 1.5)])])
    return points, np.repeat([0, 1], n)


def halves(n=30):
    """Affinities of somebody who divides both lines in the middle instead."""
    labels = np.tile(np.repeat([0, 1], n // 2), 2)
    return np.where(labels[:, None] == labels, 0.6, 0.4) + 0.4 * np.eye(2 * n), labels


def flat_head(weights):
    return flattened({f"{HEAD}{name}": np.asarray(weight, np.float32) for name, weight in weights.items()})


def random_head():
    rng = np.random.default_rng(0)
    return flat_head({name: 0.3 * rng.normal(size=shape) for name, shape in shapes(WIDTH).items()})


def scored(head, told):
    return scores(Arrays(), unflattened(head), told)


def head_for_joined_pairs(sign):
    """A head whose score is ``sign`` times the share of pairs that a candidate joins, from its features alone."""
    weights = {name: np.zeros(shape) for name, shape in shapes(WIDTH).items()}
    joined = 7
    weights["whole.weight"][0, 3 * WIDTH + joined] = 1.0
    weights["whole.bias"][0] = 10.0  # where the activation is linear
    weights["score.weight"][0, 0] = 1_000.0 * sign
    return flat_head(weights)


def test_candidates_are_what_affinities_and_connected_points_suggest():
    points, lines = two_lines()
    affinity, other = halves()
    found = Candidates(points, affinity, np.zeros(60)).beside(IN_TURN)
    assert len(found) == 3
    np.testing.assert_array_equal(found[0], IN_TURN)
    assert adjusted_rand_score(found[1], other) == 1
    assert adjusted_rand_score(found[2], lines) == 1


def test_a_connected_part_of_outliers_alone_is_no_cluster():
    points, _ = two_lines()
    affinity, _ = halves()
    noise = np.where(np.arange(60) < 30, 0.9, 0.0)  # the whole first line
    assert len(Candidates(points, affinity, noise).beside(IN_TURN)) == 2


def test_a_partition_that_was_proposed_before_is_no_other_candidate():
    points, lines = two_lines()
    affinity = np.where(lines[:, None] == lines, 0.9, 0.1)
    assert len(Candidates(points, affinity, np.zeros(60)).beside(1 - lines)) == 1


def test_candidates_keep_equal_points_together():
    points, _ = two_lines()
    points[30] = points[0]  # in different clusters of the affinities' linkage and in different lines
    labels = np.tile(np.repeat([0, 1], 15), 2)
    labels[30] = 1
    affinity = np.where(labels[:, None] == labels, 0.9, 0.1)
    found = Candidates(points, affinity, np.zeros(60)).beside(IN_TURN)
    assert all(each[0] == each[30] for each in found[1:])
    points[30] += 1e-3
    assert adjusted_rand_score(Candidates(points, affinity, np.zeros(60)).beside(IN_TURN)[1], labels) == 1


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**31), st.integers(4, 40), st.integers(2, 6))
def test_every_candidate_has_all_clusters(seed, n, k):
    rng = np.random.default_rng(seed)
    k = min(k, n - 1)
    raw = rng.uniform(size=(n, n))
    first = rng.permutation(np.arange(n) % k)
    noise = rng.uniform(size=n) * rng.integers(2)
    points = rng.normal(size=(n, 2)).round(1)
    for labels in Candidates(points, (raw + raw.T) / 2, noise).beside(first):
        assert np.unique(labels).tolist() == list(range(k))


def test_features_by_hand():
    affinity = np.array([[1.0, 0.8, 0.2], [0.8, 1.0, 0.4], [0.2, 0.4, 1.0]])
    told = describe(affinity, np.array([0.0, 0.5, 0.1]), np.array([0.5, 0.25, 0.25]), np.array([[0, 0, 1], [0, 1, 2]]))
    own, other, spread = 2, 3, 7
    np.testing.assert_allclose(told.clusters_JKC[0, :2, own], [0.8, 0.0], atol=1e-6)
    np.testing.assert_allclose(told.clusters_JKC[0, :2, other], [0.3, 0.3], atol=1e-6)
    np.testing.assert_allclose(told.clusters_JKC[0, :2, spread], 0, atol=1e-3)
    np.testing.assert_allclose(told.share_JK, [[2 / 3, 1 / 3, 0], [1 / 3, 1 / 3, 1 / 3]], atol=1e-6)
    np.testing.assert_array_equal(told.is_there_JK, [[1, 1, 0], [1, 1, 1]])
    joined, same, both = 1 / 3, 1.4 / 3, 0.8 / 3
    index = (both - joined * same) / ((joined + same) / 2 - joined * same)
    assert told.whole_JG[0, 0] == pytest.approx(index)
    assert told.whole_JG[0, 0] == pytest.approx(agreement(affinity, np.array([0, 0, 1])))
    assert expit(told.expected_J[0]) == pytest.approx(index)


def test_an_untrained_head_gives_the_index_that_affinities_expect():
    affinity, labels = halves()
    untrained = flat_head({name: np.zeros(shape) for name, shape in shapes(WIDTH).items()})
    found = scored(untrained, describe(affinity, np.zeros(60), FLAT, labels[None]))
    assert expit(found)[0] == pytest.approx(agreement(affinity, labels))


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**31), st.integers(6, 30), st.integers(2, 5))
def test_the_order_of_points_and_clusters_does_not_matter(seed, n, k):
    rng = np.random.default_rng(seed)
    raw = rng.uniform(size=(n, n))
    affinity, noise = (raw + raw.T) / 2, rng.uniform(size=n)
    labels = rng.permutation(np.arange(n) % k)
    order, names = rng.permutation(n), rng.permutation(k)
    head = random_head()
    told = describe(affinity, noise, FLAT, labels[None])
    again = describe(affinity[np.ix_(order, order)], noise[order], FLAT, names[labels][order][None])
    np.testing.assert_allclose(scored(head, told), scored(head, again), atol=1e-4)


@pytest.mark.parametrize(("sign", "place"), [(1.0, 2), (-1.0, 0)])
def test_the_candidate_of_the_highest_score_is_chosen_however_large_scores_are(sign, place):
    points, affinity = two_lines()[0][:40], halves()[0][:40, :40]  # the second line is shorter
    candidates = Candidates(points, affinity, np.zeros(40)).beside(IN_TURN[:40])
    joined = [int((np.bincount(each) ** 2).sum()) for each in candidates]
    assert joined == [800, 850, 1000]
    labels, index = best_candidate(head_for_joined_pairs(sign), points, affinity, np.zeros(40), FLAT, IN_TURN[:40])
    np.testing.assert_array_equal(labels, candidates[place])
    assert index == (1.0 if sign > 0 else 0.0)


def test_weights_of_a_head_in_one_array_are_the_same_weights():
    head = random_head()
    again = unflattened(head)
    np.testing.assert_array_equal(np.concatenate([again.score.weight.ravel(), again.score.bias]), head[-17:])
    assert width_of(len(head)) == WIDTH
    assert len(flattened({})) == 0  # a network may have none
    for wrong in (0, len(head) - 1, len(head) + 1):
        with pytest.raises(ValueError, match="no head for partitions has"):
            width_of(wrong)


def test_weights_of_another_shape_are_refused():
    arrays = {f"{HEAD}{name}": np.zeros(shape) for name, shape in shapes(WIDTH).items()}
    arrays["partitions.whole.weight"] = arrays["partitions.whole.weight"][:, 1:]
    with pytest.raises(ValueError, match="must have the shapes"):
        flattened(arrays)
    del arrays["partitions.whole.weight"]
    with pytest.raises(ValueError, match="must have the shapes"):
        flattened(arrays)
