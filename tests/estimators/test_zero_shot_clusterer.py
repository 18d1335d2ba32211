import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.metrics import adjusted_rand_score, roc_auc_score

import coterie
from coterie import ZeroShotClusterer, checkpoints, load


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(150, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)


@pytest.fixture(scope="module")
def fitted(blobs):
    return ZeroShotClusterer(random_state=0).fit(blobs[0])


def test_clusters_of_any_shape_and_their_number_are_found(blobs, fitted):
    sets = {
        "moons": make_moons(300, noise=0.05, random_state=0),
        "circles": make_circles(300, noise=0.04, factor=0.5, random_state=0),
    }
    for X, labels in sets.values():
        assert adjusted_rand_score(labels, ZeroShotClusterer(random_state=0).fit_predict(X)) > 0.95
    assert adjusted_rand_score(blobs[1], fitted.labels_) == 1
    assert fitted.n_clusters_ == 3
    assert fitted.n_clusters_proba_.sum() == pytest.approx(1)
    assert fitted.n_clusters_proba_.argmax() == 2
    np.testing.assert_allclose(sorted(fitted.cluster_centers_.sum(axis=1)), [0, 9, 9], atol=0.5)


def test_one_gaussian_is_one_cluster():
    X = np.random.default_rng(0).normal(size=(200, 2))
    assert ZeroShotClusterer(random_state=0).fit(X).n_clusters_ == 1


@pytest.mark.parametrize("k", [1, 2, 5, 40])
def test_a_given_number_of_clusters_is_kept(blobs, k):
    model = ZeroShotClusterer(k, random_state=0).fit(blobs[0])
    assert np.unique(model.labels_).tolist() == list(range(k))
    assert model.n_clusters_ == k


def test_rows_that_were_read_are_predicted_as_they_were_fitted(blobs, fitted):
    proba = fitted.predict_proba(blobs[0])
    assert np.array_equal(fitted.predict(blobs[0]), fitted.labels_)
    np.testing.assert_allclose(proba.sum(axis=1), 1)


def test_a_prediction_does_not_depend_on_the_other_rows_asked(blobs, fitted):
    new = blobs[0][:40] + 0.3
    alone = np.concatenate([fitted.predict_proba(row[None]) for row in new])
    np.testing.assert_allclose(alone, fitted.predict_proba(new), atol=1e-12)


def test_units_of_the_columns_do_not_matter(blobs, fitted):
    other = ZeroShotClusterer(random_state=0).fit(blobs[0] * [1e-3, 1e4] + [5, -7])
    assert adjusted_rand_score(other.labels_, fitted.labels_) == 1


def test_the_same_seed_gives_the_same_clusters(blobs, fitted):
    again = ZeroShotClusterer(random_state=0).fit(blobs[0])
    np.testing.assert_array_equal(again.context_proba_, fitted.context_proba_)


@pytest.mark.parametrize("n", [150, 400])
def test_the_order_of_rows_and_columns_does_not_matter(n):
    X, _ = make_blobs(n, n_features=3, centers=4, cluster_std=2.5, random_state=1)
    rng = np.random.default_rng(0)
    rows, columns = rng.permutation(n), rng.permutation(3)
    one = ZeroShotClusterer(max_context=200, random_state=0).fit(X)
    other = ZeroShotClusterer(max_context=200, random_state=0).fit(X[rows][:, columns])
    np.testing.assert_array_equal(other.labels_, one.labels_[rows])
    np.testing.assert_allclose(other.n_clusters_proba_, one.n_clusters_proba_, atol=1e-4)
    np.testing.assert_allclose(other.certainty_, one.certainty_[rows], atol=1e-3)


def test_affinities_are_probabilities_and_certainty_is_high_where_clusters_are_apart(blobs, fitted):
    assert fitted.affinity_.shape == (150, 150)
    assert fitted.affinity_.min() >= 0
    assert fitted.affinity_.max() <= 1
    assert fitted.certainty_.min() > 0.8
    assert 0.8 < fitted.expected_ari_ <= 1
    assert sorted(fitted.context_indices_) == list(range(150))


def test_labels_for_another_number_of_clusters_are_cut_from_the_same_hierarchy(blobs, fitted):
    assert fitted.children_.shape == (149, 2)
    assert adjusted_rand_score(blobs[1], fitted.cut(blobs[0], 3)) == 1
    for k in (1, 2, 7):
        given = ZeroShotClusterer(k, random_state=0).fit(blobs[0])
        np.testing.assert_array_equal(fitted.cut(blobs[0], k), given.labels_)
        assert len(np.unique(given.labels_)) == k
        again = fitted.recut(blobs[0], k)
        np.testing.assert_array_equal(again.labels_, given.labels_)
        assert again.expected_ari_ == pytest.approx(given.expected_ari_)
    with pytest.raises(ValueError, match="between 1 and 150"):
        fitted.cut(blobs[0], 151)


def test_a_saved_model_is_cut_without_its_network(blobs, tmp_path):
    for file in checkpoints.SHELF.glob("zeroshot-3.*"):
        (tmp_path / file.name.replace("zeroshot-3", "mine")).write_bytes(file.read_bytes())
    fitted = ZeroShotClusterer(network=tmp_path / "mine.safetensors", random_state=0).fit(blobs[0])
    fitted.save(tmp_path / "blobs.model")
    expected = [fitted.cut(blobs[0], k) for k in (2, 5)]
    for file in tmp_path.glob("mine.*"):
        file.unlink()
    loaded = load(tmp_path / "blobs.model")
    for k, labels in zip((2, 5), expected):
        np.testing.assert_array_equal(loaded.cut(blobs[0], k), labels)
    del loaded.head_  # as in models of versions before there was a head
    assert len(np.unique(loaded.cut(blobs[0], 5))) == 5


def test_many_clusters_are_found_without_their_number():
    centers = 10 * np.stack(np.meshgrid(np.arange(5), np.arange(5)), axis=-1).reshape(-1, 2)
    X, labels = make_blobs(500, centers=centers, cluster_std=0.6, random_state=0)
    assert adjusted_rand_score(labels, ZeroShotClusterer(random_state=0).fit_predict(X)) > 0.9


def test_several_contexts_are_averaged_and_one_thread_gives_the_same(blobs, fitted):
    model = ZeroShotClusterer(n_contexts=2, device="cpu", n_jobs=1, random_state=0).fit(blobs[0])
    assert adjusted_rand_score(model.labels_, fitted.labels_) == 1


def test_samples_are_read_until_two_answers_agree():
    rng = np.random.default_rng(0)
    clear = rng.normal(size=(300, 2)) + 9 * np.eye(2)[np.arange(300) % 2]
    settings = {"n_contexts": "auto", "max_context": 60, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = ZeroShotClusterer(**settings).fit(clear)
    assert adjusted_rand_score(fitted.labels_, np.arange(300) % 2) == 1
    with pytest.warns(UserWarning, match="answers to 4 and 8 samples agree by"):
        ZeroShotClusterer(5, **settings).fit(rng.normal(size=(300, 2)))
    small = ZeroShotClusterer(n_contexts="auto", random_state=0).fit(clear)
    np.testing.assert_array_equal(small.labels_, ZeroShotClusterer(random_state=0).fit(clear).labels_)


def test_a_large_table_is_labelled_beside_samples_of_it():
    X, labels = make_blobs(5_000, centers=[[0, 0], [12, 0], [0, 12], [12, 12]], random_state=0)
    model = ZeroShotClusterer(max_context=200, random_state=0).fit(X)
    assert model.context_.shape == (200, 2)
    assert len(model.labels_) == 5_000
    assert adjusted_rand_score(labels, model.labels_) > 0.99


def test_text_categories_dates_and_gaps_are_taken_as_they_come():
    rng = np.random.default_rng(0)
    half = np.repeat([0, 1], 60)
    frame = pd.DataFrame(
        {
            "amount": rng.normal(size=120) + 6 * half,
            "kind": np.where(half, "shop", "home"),
            "since": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.normal(size=120) + 400 * half, unit="D"),
            "level": pd.Categorical(np.where(half, "b", "a")),
            "empty": np.nan,
            "flag": half == 1,
        }
    )
    frame.loc[frame.index % 7 == 0, "amount"] = np.nan
    frame.loc[frame.index % 11 == 0, "kind"] = None
    with pytest.warns(UserWarning, match="'empty' .it has no values"):
        model = ZeroShotClusterer(2, kinds={"since": "date"}, random_state=0).fit(frame)
    assert adjusted_rand_score(half, model.labels_) == 1
    assert np.isfinite(model.cluster_centers_[:, [0, 2]]).all()
    assert np.isnan(model.cluster_centers_[:, 1]).all()
    unseen = frame.iloc[:4].assign(kind="elsewhere")
    assert np.array_equal(model.predict(unseen), model.labels_[:4])


@pytest.mark.parametrize("seed", range(3))
def test_a_wide_cluster_stays_whole_and_small_ones_beside_it_stay_apart(seed):
    rng = np.random.default_rng(seed)
    sizes, deviations = [400, 60, 40], [1.3, 0.5, 0.5]
    truth = np.repeat(range(3), sizes)
    X = np.array([[0, 0], [6, 0], [3, 5]])[truth] + np.repeat(deviations, sizes)[:, None] * rng.normal(size=(500, 2))
    model = ZeroShotClusterer(random_state=0).fit(X)
    assert model.n_clusters_ == 3
    assert adjusted_rand_score(truth, model.labels_) > 0.95


def test_far_rows_are_outliers():
    rng = np.random.default_rng(2)
    X = np.concatenate([rng.normal(size=(150, 2)) * 0.3 + [[4, 0]], rng.normal(size=(150, 2)) * 0.3 - [[4, 0]]])
    X = np.concatenate([X, rng.uniform(-9, 9, size=(30, 2))])
    model = ZeroShotClusterer(2, random_state=0).fit(X)
    assert roc_auc_score(np.arange(len(X)) >= 300, model.noise_) > 0.95
    assert model.outliers_[-30:].mean() > 0.7
    assert not model.outliers_[:-30].any()
    np.testing.assert_array_equal(model.labels_ == -1, model.outliers_)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert set(model.labels_) == {-1, 0, 1}
    kept = model.labels_ == 0
    np.testing.assert_allclose(model.cluster_centers_[0], X[kept].mean(axis=0))


def test_the_outliers_of_a_cut_do_not_depend_on_the_first_fit():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(80, 2)) + center for center in ([0, 0], [12, 0], [0, 12])])
    X = np.concatenate([X, rng.uniform(-40, 40, size=(25, 2))])
    three = ZeroShotClusterer(3, random_state=0).fit(X)
    many = ZeroShotClusterer(15, random_state=0).fit(X)
    np.testing.assert_array_equal(many.cut(X, 3), three.labels_)
    np.testing.assert_array_equal(three.recut(X, 15).predict(X), many.labels_)
    sizes = np.bincount(three.cut(X, 5)[three.labels_ >= 0] + 1)[1:]
    assert sizes.min() > 0  # outliers alone are no cluster
    for wrong in ("3", 2.5, None):
        with pytest.raises(TypeError, match="n_clusters must be an instance of int"):
            three.cut(X, wrong)


def test_rows_whose_label_was_given_are_no_outliers():
    rng = np.random.default_rng(2)
    X = np.concatenate([rng.normal(size=(60, 2)) * 0.3 + [[4, 0]], rng.normal(size=(60, 2)) * 0.3 - [[4, 0]]])
    X = np.concatenate([X, rng.uniform(-15, 15, size=(20, 2))])
    free = ZeroShotClusterer(2, random_state=0).fit(X)
    y = np.full(len(X), -1)
    y[[0, 60]] = [0, 1]
    far = np.flatnonzero(free.outliers_)[0]
    y[far] = 1
    model = ZeroShotClusterer(2, random_state=0).fit(X, y)
    assert model.labels_[far] == model.predict(X)[far] == 1
    assert model.noise_[far] == 0


def test_no_cluster_consists_of_outliers_alone():
    X = np.random.default_rng(0).uniform(-9, 9, size=(40, 2))
    for k in (2, 12, 40):
        assert set(ZeroShotClusterer(k, random_state=0).fit(X).labels_) - {-1} == set(range(k))


def test_a_saved_model_predicts_the_same(tmp_path, blobs, fitted):
    fitted.save(tmp_path / "blobs.model")
    again = coterie.load(tmp_path / "blobs.model")
    np.testing.assert_array_equal(again.predict_proba(blobs[0]), fitted.predict_proba(blobs[0]))
    assert again.n_clusters_ == 3


@pytest.mark.parametrize(
    ("settings", "X", "remedy"),
    [
        ({"n_clusters": 101}, np.zeros((200, 1)), "use coterie.KMeans"),
        ({"n_clusters": 5}, np.zeros((3, 1)), "set n_clusters to 3 or less"),
        ({"n_clusters": 3}, np.array([[0.0]] * 5 + [[1.0]] * 5), "set n_clusters to 2 or less"),
        ({"n_clusters": 5, "max_context": 4}, np.zeros((200, 1)), "increase max_context"),
        ({"network": "flow-d2"}, np.zeros((9, 1)), "with the package: zeroshot"),
        ({}, np.array([[1.0], [np.inf]]), "set them to NaN"),
    ],
    ids=["clusters", "rows", "distinct rows", "context", "network", "infinity"],
)
def test_what_is_beyond_the_limits_is_refused_with_the_remedy(settings, X, remedy):
    with pytest.raises(ValueError, match=remedy):
        ZeroShotClusterer(**settings).fit(X)


@pytest.mark.parametrize("X", [np.zeros((7, 2)), np.array([[0.0], [1.0]]), np.full((4, 1), np.nan)])
def test_degenerate_tables_have_labels(X):
    model = ZeroShotClusterer(random_state=0).fit(X)
    assert model.labels_.shape == (len(X),)
    assert model.labels_.max() < model.n_clusters_


@pytest.mark.parametrize("size", [1e-200, 1e300])
def test_very_small_and_very_large_numbers_are_scaled_too(blobs, fitted, size):
    found = ZeroShotClusterer(random_state=0).fit(blobs[0] * size)
    np.testing.assert_array_equal(found.labels_, fitted.labels_)


@pytest.mark.parametrize("k, copies", [(2, 20), (3, 200), (5, 20), (12, 20), (12, 100)])
def test_few_different_rows_that_occur_often_are_clusters(k, copies):
    points = np.random.default_rng(k).normal(size=(k, 2))
    model = ZeroShotClusterer(random_state=0).fit(np.repeat(points, copies, axis=0))
    assert model.n_clusters_ == k
    assert adjusted_rand_score(np.repeat(np.arange(k), copies), model.labels_) == 1
    assert model.n_clusters_proba_.argmax() == k - 1


@pytest.mark.parametrize("k", [5, 7])
def test_few_different_rows_that_occur_twenty_times_are_not_one_cluster(k):
    points = np.random.default_rng((k, 20)).normal(size=(k, 2))
    assert ZeroShotClusterer(random_state=0).fit(np.repeat(points, 20, axis=0)).n_clusters_ == k


def test_texts_that_agree_perfectly_are_two_clusters():
    table = pd.DataFrame({"answer": ["yes"] * 30 + ["no"] * 30, "colour": ["red"] * 30 + ["blue"] * 30})
    model = ZeroShotClusterer(random_state=0).fit(table)
    assert model.n_clusters_proba_[1] > 0.9
    assert adjusted_rand_score(table["answer"], model.labels_) == 1
    np.testing.assert_array_equal(model.predict(table), model.labels_)


def test_a_copied_table_has_the_clusters_of_the_table(blobs, fitted):
    X, _ = blobs
    model = ZeroShotClusterer(random_state=0).fit(np.r_[X, X])
    assert len(model.context_indices_) == len(X)
    assert model.n_clusters_ == fitted.n_clusters_


def test_a_rare_row_counts_when_asking_whether_there_are_enough_different_ones():
    X = np.zeros((3000, 2))
    X[77] = 1
    assert ZeroShotClusterer(2, random_state=0).fit(X).n_clusters_ == 2
    with pytest.raises(ValueError, match=r"only 2 distinct rows \(n_samples=3000\)"):
        ZeroShotClusterer(3, random_state=0).fit(X)


@pytest.mark.parametrize("seed", range(2))
def test_every_cluster_has_a_row_also_where_few_different_rows_occur_often(seed):
    table = pd.DataFrame({"c": [f"v{i % 70}" for i in range(3_000)]})
    model = ZeroShotClusterer(random_state=seed).fit(table)
    assert set(model.labels_.tolist()) - {-1} == set(range(model.n_clusters_))


@pytest.mark.parametrize("seed", range(6))
def test_every_cluster_has_a_row_and_threads_change_nothing_where_rows_tie(seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, size=(int(rng.integers(30, 300)), 3)).astype(float)
    for k in (None, 5):
        one, two = (ZeroShotClusterer(k, random_state=seed, n_jobs=n_jobs).fit(X) for n_jobs in (1, 2))
        assert set(one.labels_.tolist()) - {-1} == set(range(one.n_clusters_))
        assert k in (None, one.n_clusters_)
        np.testing.assert_array_equal(one.affinity_, two.affinity_)
        np.testing.assert_array_equal(one.labels_, two.labels_)
        np.testing.assert_array_equal(one.predict(X), one.labels_)
