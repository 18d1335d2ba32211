import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

import coterie
from coterie import InContextClusterer, checkpoints
from tests.separated import mixtures


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(300, n_features=3, centers=4, cluster_std=1.0, center_box=(-8, 8), random_state=3)


@pytest.fixture(scope="module")
def fitted(blobs):
    return InContextClusterer(4, random_state=0).fit(blobs[0])


def test_far_blobs_are_found(blobs, fitted):
    assert adjusted_rand_score(blobs[1], fitted.labels_) > 0.97
    assert fitted.cluster_centers_.shape == (4, 3)
    assert fitted.weights_.sum() == pytest.approx(1)
    assert fitted.mode_weights_.sum() == pytest.approx(1)
    assert fitted.n_clusters_ == 4
    assert fitted.converged_


def test_a_row_of_the_context_is_predicted_as_it_was_fitted(blobs, fitted):
    X, _ = blobs
    assert np.array_equal(fitted.predict(X), fitted.labels_)
    proba = fitted.predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    assert (proba.argmax(axis=1) == fitted.labels_).mean() > 0.98


def test_a_prediction_does_not_depend_on_the_other_rows_asked(blobs, fitted):
    X, _ = blobs
    alone = np.concatenate([fitted.predict_proba(row[None]) for row in X[:10]])
    np.testing.assert_allclose(alone, fitted.predict_proba(X)[:10], atol=1e-12)


def test_order_place_and_scale_of_the_rows_do_not_matter(blobs, fitted):
    X, _ = blobs
    order = np.random.default_rng(0).permutation(len(X))
    moved = InContextClusterer(4, random_state=0).fit(1000 * X[order] - 5)
    assert adjusted_rand_score(moved.labels_, fitted.labels_[order]) == 1


def test_more_than_sixteen_columns_are_reduced_inside():
    X, y = make_blobs(200, n_features=40, centers=3, random_state=0)
    model = InContextClusterer(3, random_state=0).fit(X)
    assert model.components_.shape == (16, 40)
    np.testing.assert_allclose(model.components_ @ model.components_.T, np.eye(16), atol=1e-9)
    assert adjusted_rand_score(y, model.predict(X)) == 1


def test_a_large_table_is_labelled_against_a_part_of_it():
    X, y = make_blobs(3000, n_features=2, centers=[[-6, 0], [6, 0], [0, 9]], random_state=0)
    model = InContextClusterer(3, max_context=150, n_init=4, random_state=0).fit(X)
    assert len(model.labels_) == 3000
    assert adjusted_rand_score(y, model.labels_) > 0.99


def test_more_clusters_than_the_weights_know_are_refused_with_the_way_out():
    with pytest.raises(ValueError, match=r"at most 20 clusters.*KMeans"):
        InContextClusterer(21).fit(np.random.default_rng(0).normal(size=(50, 2)))


def test_too_few_rows_are_named():
    with pytest.raises(ValueError, match="n_samples=3"):
        InContextClusterer(4).fit(np.eye(3))


@pytest.mark.parametrize("n_clusters,dims", [(1, 1), (1, 4), (2, 1), (20, 16)])
def test_the_smallest_and_the_largest_fit(n_clusters, dims):
    X = np.random.default_rng(0).normal(size=(60, dims))
    model = InContextClusterer(n_clusters, n_init=2, random_state=0).fit(X)
    assert np.isfinite(model.predict_proba(X)).all()
    assert set(model.labels_) <= set(range(n_clusters))


def test_single_precision_comes_back_in_single_precision(blobs):
    model = InContextClusterer(4, n_init=2, random_state=0).fit(blobs[0].astype(np.float32))
    assert model.cluster_centers_.dtype == np.float32
    assert model.labels_.dtype == np.int32


def test_a_saved_model_predicts_the_same(tmp_path, blobs, fitted):
    X, _ = blobs
    fitted.save(tmp_path / "model.safetensors")
    again = coterie.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))


def test_the_card_of_the_weights_says_what_they_are():
    card = checkpoints.card("incontext")
    assert card["kind"] == "incontext"
    assert card["bytes"] < 3_000_000
    assert card["data"]["dims"] == [1, 16]
    assert card["data"]["clusters"] == [2, 20]


def test_clusters_of_unequal_size_keep_their_sizes():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, (240, 2)), rng.normal([4, 0], 1, (30, 2)), rng.normal([0, 4], 1, (30, 2))])
    y = np.repeat([0, 1, 2], [240, 30, 30])
    model = InContextClusterer(3, random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.85
    assert sorted(model.weights_) == pytest.approx([0.1, 0.1, 0.8], abs=0.1)


def test_several_modes_are_combined_where_clusters_overlap():
    X = np.random.default_rng(1).normal(size=(150, 5))
    model = InContextClusterer(4, random_state=0).fit(X)
    assert model.n_modes_ > 1
    assert np.array_equal(model.predict(X), model.labels_)
    alone = np.concatenate([model.predict(row[None]) for row in X[:20]])
    assert np.array_equal(alone, model.labels_[:20])


def test_threads_are_limited_while_the_network_reads(blobs):
    import torch

    before = torch.get_num_threads()
    limited = InContextClusterer(4, n_jobs=1, device="cpu", random_state=0).fit(blobs[0])
    assert torch.get_num_threads() == before
    assert np.array_equal(limited.labels_, limited.predict(blobs[0]))


def test_a_thousand_rows_take_less_than_a_second():
    import time

    X, _ = make_blobs(1000, n_features=3, centers=8, cluster_std=3.0, random_state=0)
    InContextClusterer(8, random_state=0).fit(X[:50])  # compiled and loaded
    began = time.process_time()
    InContextClusterer(8, n_jobs=1, random_state=0).fit(X)
    assert time.process_time() - began < 1.5  # of processor time: 0.7 seconds on an idle core


def test_overlapping_mixtures_are_labelled_better_than_by_kmeans():
    """The bar of the shipped weights, on a few instances: 4 x 50 points, 10 dimensions, distance 5, variance 5."""
    from sklearn.cluster import KMeans

    ours, theirs = [], []
    for x, y in zip(*mixtures([50] * 4, 10, 5.0, 5**0.5, batch=30, seed=7)[:2]):
        ours.append(adjusted_rand_score(y, InContextClusterer(4, random_state=0).fit(x).labels_))
        theirs.append(adjusted_rand_score(y, KMeans(4, n_init=10, random_state=0).fit(x).labels_))
    assert np.mean(ours) > np.mean(theirs)
