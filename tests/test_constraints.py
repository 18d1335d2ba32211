"""Labels and pairs that a user gives are kept, and the other rows follow."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from coterie import KMeans, ZeroShotClusterer
from coterie.constraints import Constraints
from coterie.zeroshot.partitions.cuts import agreement, expected_ari


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(150, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)


def estimators(n_clusters):
    return [KMeans(n_clusters, n_init=3, random_state=0), ZeroShotClusterer(random_state=0)]


def some_known(labels, count=9, seed=0):
    y = np.full(len(labels), -1)
    rows = np.random.default_rng(seed).choice(len(labels), count, replace=False)
    y[rows] = labels[rows]
    return y


def test_rows_that_are_linked_or_have_the_same_label_are_one_group():
    y = np.array([0, -1, 1, -1, 0, -1, -1])
    known = Constraints.of(7, y, must_link=[(2, 3)], cannot_link=[(5, 1)])
    assert known.group[0] == known.group[4] != known.group[2] == known.group[3]
    assert known.given.tolist() == [0, -1, 1, 1, 0, -1, -1]
    assert known.group[6] == -1
    assert known.separated_from(known.group[5]).tolist() == [known.group[1]]
    assert known.separated_from(known.group[0]).tolist() == [known.group[2]]


def test_labels_may_be_floats_with_missing_values():
    for y in (np.array([0.0, -1, 1, -1]), np.array([0, np.nan, 1, np.nan])):
        assert Constraints.of(4, y).given.tolist() == [0, -1, 1, -1]


def test_complete_targets_and_other_kinds_of_y_are_ignored(blobs):
    for y in (None, blobs[1], np.full(150, -1), blobs[1] - 0.5, blobs[1].astype(str), blobs[0]):
        assert Constraints.of(150, y) is None
    plain = KMeans(3, random_state=0).fit(blobs[0]).labels_
    np.testing.assert_array_equal(KMeans(3, random_state=0).fit(blobs[0], blobs[1]).labels_, plain)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"y": np.array([0, -1, -1])}, "one label per row of X: 4, got 3"),
        ({"y": np.array([0, 2, -1, -1])}, "without a gap"),
        ({"y": np.array([0, -3, -1, -1])}, "-1 for unknown"),
        ({"must_link": [(0, 4)]}, "must_link names row 4, but X has the rows 0 to 3"),
        ({"must_link": [0, 1]}, "pairs of row numbers"),
        ({"must_link": [(0, 1)], "cannot_link": [(1, 0)]}, "must share a cluster"),
        ({"y": np.array([0, 0, 1, -1]), "cannot_link": [(0, 1)]}, "must share a cluster"),
        ({"y": np.array([0, 1, -1, -1]), "must_link": [(0, 2), (2, 1)]}, "another label"),
    ],
)
def test_contradictions_are_named(given, words):
    with pytest.raises(ValueError, match=words):
        Constraints.of(4, **given)


@pytest.mark.parametrize("place", [0, 1], ids=["KMeans", "ZeroShotClusterer"])
def test_given_labels_are_kept_and_name_the_clusters(blobs, place):
    X, labels = blobs
    y = some_known(labels)
    y[y >= 0] = np.array([2, 0, 1])[y[y >= 0]]
    model = estimators(3)[place].fit(X, y)
    np.testing.assert_array_equal(model.labels_[y >= 0], y[y >= 0])
    np.testing.assert_array_equal(model.labels_, np.array([2, 0, 1])[labels])
    assert model.fit_predict(X, y).max() == 2


@pytest.mark.parametrize("place", [0, 1], ids=["KMeans", "ZeroShotClusterer"])
def test_labels_divide_a_group_and_join_others(blobs, place):
    X, _ = blobs
    halves = (X[:, 0] > 4.5).astype(int)  # two of the three groups have the same label
    halves[X[:, 1] > 4.5] = 0
    model = estimators(2)[place].fit(X, some_known(halves, 20))
    assert adjusted_rand_score(model.labels_, halves) > 0.95
    one = np.random.default_rng(0).normal(size=(150, 2))
    side = (one[:, 0] > 0).astype(int)
    model = estimators(2)[place].fit(one, some_known(side, 30))
    assert adjusted_rand_score(model.labels_, side) > 0.4


@pytest.mark.parametrize("place", [0, 1], ids=["KMeans", "ZeroShotClusterer"])
def test_pairs_share_a_cluster_or_do_not(blobs, place):
    X, labels = blobs
    first = [int(np.flatnonzero(labels == j)[0]) for j in range(3)]
    other = int(np.flatnonzero(labels == 0)[1])
    pairs = {"must_link": [(first[0], first[1])], "cannot_link": [(first[2], other), (first[0], other)]}
    found = estimators(3)[place].fit(X, **pairs).labels_
    assert found[first[0]] == found[first[1]] != found[other]
    assert found[first[2]] != found[other]
    free = np.setdiff1d(np.arange(150), [*first, other])
    assert adjusted_rand_score(found[free], labels[free]) > 0.6


def known_halves(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = np.where(np.arange(n) % 3 == 0, (X[:, 0] > 0).astype(int), -1)
    pairs = {"must_link": [(1, 2), (4, 5)], "cannot_link": [(7, 8), (10, 11)]}
    return X, y, pairs, rng.integers(0, 4, n)


@pytest.mark.parametrize("n_init", [1, 5])
def test_weights_are_repetitions_under_constraints(n_init):
    """Rows of weight 0 took part in the start, and given labels started at means without weights."""
    X, y, pairs, times = known_halves()
    times[[1, 2, 4, 5, 7, 8, 10, 11]] = 1  # a pair of repeated rows is ambiguous
    rows = np.repeat(np.arange(len(X)), times)
    moved = {name: [[rows.tolist().index(i) for i in pair] for pair in given] for name, given in pairs.items()}
    weighted, copied = (KMeans(4, n_init=n_init, random_state=2) for _ in range(2))
    weighted.fit(X, y, sample_weight=times.astype(float), **pairs)
    copied.fit(X[rows], y[rows], **moved)
    np.testing.assert_array_equal(weighted.labels_[rows], copied.labels_)
    np.testing.assert_allclose(weighted.cluster_centers_, copied.cluster_centers_)
    assert weighted.inertia_ == pytest.approx(copied.inertia_)
    np.testing.assert_array_equal(weighted.labels_[y >= 0], y[y >= 0])  # rows of weight 0 as well


def test_a_labelled_row_of_weight_zero_is_no_start():
    X = np.array([[0.0], [0.1], [5.0], [5.1], [1e6]])
    y = np.array([0, -1, 1, -1, 1])
    model = KMeans(2, random_state=0).fit(X, y, sample_weight=[1, 1, 1, 1, 0])
    np.testing.assert_allclose(model.cluster_centers_, [[0.05], [5.05]])
    assert model.labels_.tolist() == [0, 0, 1, 1, 1]


def test_constraints_keep_types_scales_and_sparse_rows():
    X, y, pairs, _ = known_halves()
    plain = KMeans(4, random_state=0).fit(X, y, **pairs)
    for exponent in (-400, 400):
        scaled = KMeans(4, random_state=0).fit(np.ldexp(X, exponent), y, **pairs)
        np.testing.assert_array_equal(scaled.cluster_centers_, np.ldexp(plain.cluster_centers_, exponent))
        np.testing.assert_array_equal(scaled.labels_, plain.labels_)
    single = KMeans(4, random_state=0).fit(X.astype(np.float32), y, **pairs)
    assert single.cluster_centers_.dtype == np.float32
    thin = KMeans(4, random_state=0).fit(csr_matrix(X), y, **pairs)
    np.testing.assert_array_equal(thin.labels_, plain.labels_)
    for engine in ("literal", "fused", "lazy"):
        with pytest.raises(ValueError, match=f"engine='{engine}' knows no y, .* use engine='auto'"):
            KMeans(4, engine=engine).fit(X, y)


def test_an_empty_cluster_takes_over_no_row_that_is_bound():
    X = np.array([[0.0], [1.0], [2.0], [40.0], [50.0]])
    start = np.array([[0.0], [1.0], [1e3]])
    model = KMeans(3, init=start, max_iter=1).fit(X, must_link=[(0, 4)])
    assert 40.0 in model.cluster_centers_  # and not 50, the farthest


def test_too_few_clusters_for_the_pairs_are_named(blobs):
    with pytest.raises(ValueError, match="n_clusters=2 is too small"):
        KMeans(2).fit(blobs[0], cannot_link=[(0, 1), (1, 2), (0, 2)])
    y = some_known(blobs[1])
    for estimator in (KMeans(2), ZeroShotClusterer(2)):
        with pytest.raises(ValueError, match="3 labels are given, but n_clusters=2"):
            estimator.fit(blobs[0], y)


def test_labelled_rows_are_among_those_that_are_read(blobs):
    X, labels = make_blobs(600, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)
    y = some_known(labels, 40)
    model = ZeroShotClusterer(max_context=100, random_state=0).fit(X, y, must_link=[(0, 1)])
    np.testing.assert_array_equal(model.labels_[y >= 0], y[y >= 0])
    assert model.labels_[0] == model.labels_[1]
    assert np.isin([0, 1], model.context_indices_).all()
    assert len(model.context_indices_) == len(set(model.context_indices_.tolist())) == 100
    pairs = np.arange(200).reshape(-1, 2)
    with pytest.raises(ValueError, match="at most 50 can be read"):
        ZeroShotClusterer(max_context=100).fit(X, must_link=pairs)


def test_labels_pass_through_a_pipeline(blobs):
    y = some_known(blobs[1])
    model = make_pipeline(StandardScaler(), KMeans(3, random_state=0)).fit(blobs[0], y)
    np.testing.assert_array_equal(model[-1].labels_[y >= 0], y[y >= 0])


def test_the_expected_agreement_is_that_of_the_hierarchy():
    p = np.random.default_rng(0).uniform(size=(4, 4))
    p = (p + p.T) / 2
    of_tree = expected_ari(p, np.array([0, 2, 4]), np.array([1, 3, 5]), 3)
    assert agreement(p, np.array([0, 0, 1, 1])) == pytest.approx(of_tree[1])


def test_labels_of_rows_in_a_file_are_refused_like_links(tmp_path):
    """They were ignored without a word."""
    np.save(tmp_path / "a.npy", np.arange(20.0).reshape(10, 2))
    for given in ({"y": [0, 1] + [-1] * 8}, {"must_link": [[0, 1]]}):
        with pytest.raises(ValueError, match="for rows in memory only: pass an array or a DataFrame"):
            KMeans(2).fit(str(tmp_path / "a.npy"), **given)
