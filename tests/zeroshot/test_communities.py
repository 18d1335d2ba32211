"""Clusters of embeddings, principal components and other wide tables of one scale, by their neighbour graph."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from coterie import ZeroShotClusterer, load
from coterie.living.granularity import granularity
from coterie.tabular.clustered_table import ClusteredTable
from coterie.zeroshot import communities


def groups(n_groups: int, n: int, n_columns: int = 32, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_groups, size=n)
    return rng.normal(size=(n_groups, n_columns))[truth] + 0.9 * rng.normal(size=(n, n_columns)), truth


@pytest.fixture(scope="module")
def forty():
    X, truth = groups(40, 1_200)
    return X, truth, ZeroShotClusterer(random_state=0).fit(X)


@pytest.mark.parametrize(("n_groups", "n"), [(3, 300), (120, 3_000)])
def test_few_and_many_groups_are_found_without_their_number(n_groups, n):
    X, truth = groups(n_groups, n)
    model = ZeroShotClusterer(random_state=0).fit(X)
    assert adjusted_rand_score(truth, model.labels_) > 0.85
    assert n_groups / 1.1 <= model.n_clusters_ <= n_groups * 1.1
    assert not model.outliers_.any()


def test_a_single_cloud_is_one_cluster():
    X = np.random.default_rng(0).normal(size=(600, 40)) * np.arange(1, 41) ** -0.5
    model = ZeroShotClusterer(random_state=0, scale="common").fit(X)
    assert model.n_clusters_ == 1
    assert model.n_clusters_proba_[0] > 0.5
    assert set(model.labels_) == {0}


def test_there_may_be_more_than_a_hundred_clusters(forty):
    X, _, model = forty
    given = ZeroShotClusterer(150, random_state=0).fit(X)
    assert len(np.unique(given.labels_)) == given.n_clusters_ == 150
    np.testing.assert_array_equal(model.cut(X, 30), ZeroShotClusterer(30, random_state=0).fit(X).labels_)
    with pytest.raises(ValueError, match="must be between 1 and 1200"):
        model.cut(X, 1_201)


def test_every_number_up_to_that_of_the_rows_can_be_asked_for(forty):
    X, _, model = forty
    assert [len(np.unique(model.cut(X, k))) for k in (1, 2, 300, 1_200)] == [1, 2, 300, 1_200]


def test_threads_and_the_order_of_rows_and_columns_change_nothing(forty):
    X, _, model = forty
    two = ZeroShotClusterer(random_state=0, n_jobs=2).fit(X)
    np.testing.assert_array_equal(model.labels_, two.labels_)
    np.testing.assert_array_equal(model.certainty_, two.certainty_)
    order = np.random.default_rng(1).permutation(len(X))
    other = ZeroShotClusterer(random_state=0).fit(X[order])
    assert adjusted_rand_score(model.labels_[order], other.labels_) == 1.0


def test_seeds_agree(forty):
    X, _, model = forty
    found = [ZeroShotClusterer(random_state=seed).fit(X).n_clusters_ for seed in (1, 2, 3)]
    assert all(abs(k - model.n_clusters_) <= 2 for k in found)


def test_rows_that_were_not_read_join_the_nearest(monkeypatch):
    monkeypatch.setattr(communities, "MOST_ROWS", 500)
    X, truth = groups(8, 1_500)
    model = ZeroShotClusterer(random_state=0).fit(X)
    assert len(model.context_) == 500
    assert adjusted_rand_score(truth, model.labels_) > 0.85
    np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_a_saved_model_predicts_cuts_and_splits_as_before(forty, tmp_path):
    X, _, model = forty
    model.save(tmp_path / "forty.model")
    again = load(tmp_path / "forty.model")
    np.testing.assert_array_equal(again.predict(X + 0.01), model.predict(X + 0.01))
    np.testing.assert_array_equal(again.predict_certainty(X), model.certainty_)
    np.testing.assert_array_equal(again.cut(X, 12), model.cut(X, 12))
    parts = again.recut(X, 12).split(0, 2, X=X)
    assert parts.n_clusters_ == 13


def test_labels_that_are_given_are_kept_by_the_network(forty):
    X, truth, _ = forty
    y = np.where(np.arange(len(X)) < 40, truth % 2, -1)
    known = ZeroShotClusterer(random_state=0).fit(X, y)
    np.testing.assert_array_equal(known.labels_[:40], y[:40])
    assert hasattr(known, "affinity_")
    assert not hasattr(known, "communities_")


def test_sums_of_weights_are_exact_so_that_no_order_matters():
    X, _ = groups(5, 300)
    graph = communities._graph(X, 1)
    again = communities._weighted_anew(graph, np.random.default_rng(0))
    for one in (graph, again):
        units = one.data * communities.EXACT
        np.testing.assert_array_equal(units, np.round(units))
        assert (one != one.T).nnz == 0
    np.testing.assert_array_equal(graph.indices, again.indices)


def test_outliers_are_the_share_that_was_asked_for_and_the_least_certain(forty):
    X, _, model = forty
    some = ZeroShotClusterer(random_state=0, outliers=0.05).fit(X)
    assert 0.03 < some.outliers_.mean() <= 0.05
    assert model.certainty_[some.outliers_].max() <= np.quantile(model.certainty_, 0.06)
    np.testing.assert_array_equal(some.predict(X), some.labels_)


def test_equal_rows_share_a_cluster():
    X, _ = groups(5, 300)
    X = np.concatenate([X, X, np.tile(X[:1], (40, 1))])
    labels = ZeroShotClusterer(random_state=0).fit(X).labels_
    np.testing.assert_array_equal(labels[:300], labels[300:600])
    assert (labels[600:] == labels[0]).all()


def test_other_numbers_of_clusters_are_compared_without_another_fit(forty):
    _, _, model = forty
    found = granularity(model, most=45)
    assert found.quality.argmax() + 1 == pytest.approx(40, abs=4)


def test_too_few_clusters_are_expected_to_agree_as_little_as_they_do():
    rng, truth = np.random.default_rng(0), np.arange(600) % 20
    X = rng.normal(size=(20, 384))[truth] + 0.5 * rng.normal(size=(600, 384))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    model = ZeroShotClusterer(random_state=0).fit(X)
    for k in (2, 10, 20):
        other = model.recut(X, k)
        assert other.expected_ari_ == pytest.approx(adjusted_rand_score(truth, other.labels_), abs=0.1)
    told = ClusteredTable.of(model.recut(X, 3), X).verdict.text
    assert told.startswith("Weak groups.")
    assert "20 clusters would be more likely (1.00): compare with -k 20." in told
