import time

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from coterie import checkpoints
from coterie.estimators.flow_mixture import FlowMixture
from coterie.mixtures import search
from coterie.mixtures.search import fewer_clusters


def blobs(n_samples=400, centers=4, n_features=2, seed=0):
    rng = np.random.default_rng(seed)
    places = 10 * np.eye(centers, max(centers, n_features))[:, :n_features] if n_features >= centers else None
    if places is None:
        angle = 2 * np.pi * np.arange(centers) / centers
        places = 5 * np.stack([np.cos(angle), np.sin(angle)], 1)[:, :n_features]
    return make_blobs(n_samples, centers=places, cluster_std=0.5, random_state=int(rng.integers(1000)))


@pytest.mark.parametrize("covariance_type", ["auto", "tied-spherical"])
def test_separated_blobs_are_found_without_their_number(covariance_type):
    X, y = blobs()
    fitted = FlowMixture(covariance_type=covariance_type, random_state=0).fit(X)
    assert adjusted_rand_score(y, fitted.labels_) > 0.95
    assert fitted.weights_[:4].sum() > 0.98
    assert (fitted.predict(X) == fitted.labels_).all()
    assert fitted.covariance_type_ == "tied-spherical"


def test_more_columns_than_the_network_knows_are_reduced():
    X, y = blobs(n_features=12)
    fitted = FlowMixture(random_state=0).fit(X)
    assert fitted.cluster_centers_.shape[1] == 12
    assert adjusted_rand_score(y, fitted.labels_) > 0.9


def test_shift_and_scale_of_the_data_carry_over():
    X, _ = blobs()
    plain = FlowMixture().fit(X)
    moved = FlowMixture().fit(1000 * X - 7e4)
    np.testing.assert_allclose(moved.cluster_centers_, 1000 * plain.cluster_centers_ - 7e4, rtol=1e-3)
    assert moved.var_ == pytest.approx(1e6 * plain.var_)


def test_rows_that_are_all_equal_are_one_cluster():
    fitted = FlowMixture().fit(np.full((20, 3), 4.0))
    assert fitted.n_clusters_ == 1
    np.testing.assert_allclose(fitted.cluster_centers_, 4.0)
    assert (fitted.labels_ == 0).all()


def test_density_samples_and_bic_belong_together():
    X, _ = blobs()
    fitted = FlowMixture(random_state=0).fit(X)
    drawn, labels = fitted.sample(5000)
    assert (fitted.predict(drawn) == labels).mean() > 0.95
    assert fitted.score(X) == pytest.approx(fitted.score_samples(X).mean())
    proba = fitted.predict_proba(X)
    np.testing.assert_allclose(proba.sum(1), 1)
    shuffled = X[:, ::-1]
    assert fitted.bic(X) < fitted.bic(shuffled)
    assert fitted.covariances_ == pytest.approx(fitted.var_)
    np.testing.assert_allclose(fitted.covariance_, fitted.var_ * np.eye(2))


@pytest.mark.parametrize(
    "settings",
    [{}, {"covariance_type": "full", "outliers": 0.1, "refine": "posterior"}, {"covariance_type": "diag"}],
    ids=["default", "posterior", "diag"],
)
def test_saved_estimators_come_back(tmp_path, settings):
    from coterie import load

    X, _ = blobs()
    fitted = FlowMixture(random_state=0, **settings).fit(X)
    fitted.save(tmp_path / "model.safetensors")
    loaded = load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(loaded.predict_proba(X), fitted.predict_proba(X))
    np.testing.assert_array_equal(loaded.sample(5)[0], fitted.sample(5)[0])


def test_rows_beyond_the_context_are_labelled_too():
    X, y = blobs(n_samples=5000)
    began = time.perf_counter()
    fitted = FlowMixture(max_context=300, random_state=0).fit(X)
    assert time.perf_counter() - began < 30
    assert adjusted_rand_score(y, fitted.labels_) > 0.95


def test_one_row_is_refused():
    with pytest.raises(ValueError, match="n_samples=1"):
        FlowMixture().fit([[1.0, 2.0]])


def test_rows_whose_squared_distances_vanish_are_refused():
    X = 1e-200 * np.random.default_rng(0).normal(size=(30, 2))
    with pytest.raises(ValueError, match="scale the columns"):
        FlowMixture().fit(X)


@pytest.mark.parametrize("covariance_type", ["auto", "tied-spherical"])
def test_rows_of_weight_two_are_like_two_rows_and_weight_zero_is_only_labelled(covariance_type):
    X, _ = blobs(n_samples=120)
    weight = np.random.default_rng(0).integers(0, 3, size=len(X))
    model = FlowMixture(covariance_type=covariance_type, tol=1e-8, random_state=0)
    weighted = clone(model).fit(X, sample_weight=weight)
    repeated = clone(model).fit(np.repeat(X, weight, axis=0))
    np.testing.assert_allclose(weighted.cluster_centers_, repeated.cluster_centers_, rtol=1e-4)
    np.testing.assert_allclose(weighted.weights_, repeated.weights_, rtol=1e-4)
    assert weighted.var_ == pytest.approx(repeated.var_, rel=1e-4)
    assert len(weighted.labels_) == len(X)


def test_the_context_of_weighted_rows_has_each_in_proportion_to_its_weight():
    model, weight = FlowMixture(max_context=100), np.array([1.0, 0.0, 3.0, 6.0])
    assert np.bincount(model._by_weight(weight, np.random.RandomState(0))).tolist() == [1, 0, 3, 6]
    many = np.bincount(model._by_weight(1000 * weight, np.random.RandomState(0)))
    np.testing.assert_allclose(many, [10, 0, 30, 60], atol=1)


def test_em_that_has_not_converged_warns():
    X, _ = blobs()
    with pytest.warns(ConvergenceWarning, match="1 iterations: increase max_iter"):
        fitted = FlowMixture(max_iter=1, tol=0.0).fit(X)
    assert not fitted.converged_
    settled = FlowMixture().fit(X)
    assert settled.converged_
    assert 1 < settled.n_iter_ <= 100
    assert FlowMixture(refine=None).fit(X).n_iter_ == 0


def test_networks_are_taken_by_name_or_path_and_only_of_the_right_kind():
    X, _ = blobs(n_samples=100)
    by_name = FlowMixture(network="flow-d8").fit(X)
    by_path = FlowMixture(network=checkpoints.SHELF / "flow-d8.safetensors").fit(X)
    np.testing.assert_array_equal(by_name.atoms_, by_path.atoms_)
    with pytest.raises(ValueError, match="'zeroshot-3' is of kind 'zeroshot', not 'flow'"):
        FlowMixture(network="zeroshot-3").fit(X)
    with pytest.raises(ValueError, match="There is no network 'flow-d3'"):
        FlowMixture(network="flow-d3").fit(X)


def test_threads_and_device_are_the_callers():
    X, _ = blobs(n_samples=100)
    before = torch.get_num_threads()
    fitted = FlowMixture(n_jobs=1, device="cpu").fit(X)
    assert torch.get_num_threads() == before
    np.testing.assert_allclose(fitted.cluster_centers_, FlowMixture().fit(X).cluster_centers_, rtol=1e-5)
    with pytest.raises(ValueError, match="device='nowhere'"):
        FlowMixture(device="nowhere").fit(X)


@pytest.mark.filterwarnings("ignore:One cluster was found")
def test_fewer_rows_than_the_network_has_dimensions_are_clustered():
    X = np.random.default_rng(0).normal(size=(5, 30))
    assert FlowMixture().fit(X).labels_.shape == (5,)


def ellipses(n_samples=500, seed=0, noise=0.0):
    """Three clusters of different covariance matrices, and rows that belong to none."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(3, size=n_samples)
    roots = np.array([[[3.0, 0.0], [2.0, 0.5]], [[0.5, 0.0], [0.0, 0.5]], [[0.4, 0.0], [-2.0, 0.8]]])
    places = np.array([[0.0, 0.0], [8.0, -5.0], [10.0, 6.0]])
    X = places[labels] + np.einsum("nij,nj->ni", roots[labels], rng.normal(size=(n_samples, 2)))
    lost = rng.random(n_samples) < noise
    X[lost], labels[lost] = rng.uniform(X.min(0), X.max(0), size=(lost.sum(), 2)), -1
    return X, labels


def test_elongated_clusters_and_their_kind_are_found():
    X, y = ellipses()
    fitted = FlowMixture(random_state=0).fit(X)
    assert (fitted.covariance_type_, fitted.n_clusters_) == ("full", 3)
    assert adjusted_rand_score(y, fitted.labels_) > 0.95
    order = [int(np.bincount(y[fitted.labels_ == k]).argmax()) for k in range(3)]
    truth = np.stack([np.cov(X[y == k].T) for k in order])
    np.testing.assert_allclose(fitted.covariances_, truth, atol=0.15 * np.abs(truth).max())
    assert FlowMixture(covariance_type="spherical").fit(X).covariances_.ndim == 1


@pytest.mark.parametrize("outliers", [0.1, "auto"])
def test_outliers_belong_to_the_uniform_component(outliers):
    X, y = ellipses(600, noise=0.1)
    fitted = FlowMixture(outliers=outliers, random_state=0).fit(X)
    assert fitted.n_clusters_ == 3
    assert fitted.noise_weight_ == pytest.approx(0.1, abs=0.04)
    np.testing.assert_array_equal(fitted.outliers_, fitted.labels_ == -1)
    assert adjusted_rand_score(y, fitted.labels_) > 0.9
    assert (fitted.predict(X) == fitted.labels_).all()
    if outliers == "auto":
        assert (fitted.predict_proba(X)[fitted.outliers_].sum(1) < 0.5).all()
    else:
        assert fitted.outliers_.sum() == 60
    assert (fitted.predict(X, assign="nearest") >= 0).all()
    drawn, labels = fitted.sample(4000)
    assert (labels == -1).mean() == pytest.approx(fitted.noise_weight_, abs=0.02)
    assert (drawn[labels == -1] >= fitted.box_[0]).all()
    assert fitted.weights_.sum() + fitted.noise_weight_ == pytest.approx(1)


def test_clean_data_have_no_uniform_component():
    X, _ = ellipses(300)
    assert FlowMixture(outliers="auto", random_state=0).fit(X).noise_weight_ == 0


def test_the_posterior_tells_how_certain_the_clusters_are():
    X, y = ellipses(300)
    fitted = FlowMixture(refine="posterior", random_state=0).fit(X)
    assert fitted.n_clusters_ == fitted.n_clusters_proba_.argmax() + 1 == 3
    assert fitted.n_clusters_proba_.sum() == pytest.approx(1)
    low, high = fitted.center_intervals_
    assert ((low <= fitted.cluster_centers_ + 0.1) & (fitted.cluster_centers_ - 0.1 <= high)).all()
    np.testing.assert_allclose(fitted.center_covariances_[0], np.cov(X[fitted.labels_ == 0].T) / 100, atol=0.03)
    together = fitted.co_assignment()
    same = y[fitted.draw_indices_][:, None] == y[fitted.draw_indices_]
    assert together[same].mean() > 0.9 > 0.1 > together[~same].mean()
    assert fitted.certainty_.min() >= 0
    assert fitted.certainty_[fitted.labels_ == 1].mean() > 0.9
    with pytest.raises(ValueError, match="refine='posterior'"):
        FlowMixture().fit(X).co_assignment()


def test_columns_of_different_units_do_not_matter():
    X, y = ellipses()
    fitted = FlowMixture(covariance_type="full", random_state=0).fit(X * [1.0, 1000.0])
    assert adjusted_rand_score(y, fitted.labels_) > 0.95


def test_clusters_of_the_flow_have_the_covariance_type_asked_for():
    X, _ = ellipses(200)
    fitted = FlowMixture(covariance_type="full", refine=None).fit(X)
    assert fitted.covariances_.shape == (fitted.n_clusters_, 2, 2)
    assert fitted.n_iter_ == 0


def test_models_of_the_first_version_predict_as_before():
    X, _ = blobs()
    fitted = FlowMixture(
        covariance_type="tied-spherical",
    ).fit(X)
    expected = fitted.predict_proba(X)
    for name in ("covariances_", "covariance_type_", "noise_weight_", "box_", "outliers_", "certainty_"):
        delattr(fitted, name)
    np.testing.assert_array_equal(fitted.predict_proba(X), expected)
    assert fitted.sample(3)[0].shape == (3, 2)


@pytest.mark.parametrize(("columns", "network"), [(1, "flow-d8"), (2, "flow-d2"), (8, "flow-d8"), (9, "flow-d16")])
def test_the_network_follows_from_the_number_of_columns(monkeypatch, columns, network):
    loaded, load = [], checkpoints.load
    monkeypatch.setattr(checkpoints, "load", lambda name, **options: loaded.append(name) or load(name, **options))
    rng = np.random.default_rng(0)
    centers = 8 * rng.normal(size=(3, columns))
    X = centers[np.arange(60) % 3] + rng.normal(size=(60, columns))
    assert FlowMixture(random_state=0).fit(X).n_clusters_ <= 3
    assert loaded == [network]


@pytest.mark.parametrize("outliers", [None, "auto"])
@pytest.mark.parametrize("far", [30.0, 1e3, 1e6])
def test_a_distant_row_does_not_hide_the_clusters(far, outliers):
    X, y = blobs()
    fitted = FlowMixture(outliers=outliers, random_state=0).fit(np.r_[X, [[far, far]]])
    assert adjusted_rand_score(np.append(y, 4), fitted.labels_) == 1


def test_a_distant_cluster_does_not_hide_the_others():
    rng, labels = np.random.default_rng(0), np.repeat(np.arange(4), 50)
    X = np.array([[0.0, 0], [8, 0], [4, 8], [100, 100]])[labels] + rng.normal(size=(200, 2))
    assert adjusted_rand_score(labels, FlowMixture(random_state=0).fit(X).labels_) > 0.95


@pytest.mark.parametrize("settings", [{}, {"covariance_type": "tied-spherical", "outliers": "auto"}])
def test_more_clusters_are_found_than_one_run_of_the_flow_gives(settings):
    rng, labels = np.random.default_rng(1), np.repeat(np.arange(30), 25)
    corners = 10.0 * np.array(np.unravel_index(rng.permutation(3**8)[:30], (3,) * 8)).T
    X = corners[labels] + 0.5 * rng.normal(size=(len(labels), 8))
    assert adjusted_rand_score(labels, FlowMixture(random_state=0, **settings).fit(X).labels_) == 1


@pytest.mark.filterwarnings("ignore:One cluster was found")
@pytest.mark.parametrize("shape", [(5, 2), (20, 2), (20, 8), (24, 10), (40, 20), (10, 50)])
def test_few_rows_are_not_clusters_of_their_own(shape):
    X = np.random.default_rng(0).normal(size=shape)
    assert FlowMixture(random_state=0).fit(X).n_clusters_ == 1


@pytest.mark.parametrize("dtype, offset", [(np.float32, 1e4), (np.float64, 1e8), (np.float64, 1e12)])
@pytest.mark.parametrize(
    "settings", [{}, {"refine": None, "covariance_type": "full"}, {"refine": "posterior", "covariance_type": "full"}]
)
def test_an_offset_changes_neither_labels_nor_densities(settings, dtype, offset):
    X, y = blobs(200)
    moved = (X + offset).astype(dtype)
    fitted = FlowMixture(random_state=0, **settings).fit(moved)
    assert adjusted_rand_score(y, fitted.labels_) == 1
    assert fitted.score(moved) == pytest.approx(FlowMixture(random_state=0, **settings).fit(X).score(X), abs=0.02)


@pytest.mark.parametrize("covariance_type", ["full", "tied", "diag", "spherical", "tied-spherical"])
def test_the_posterior_of_columns_with_one_value(covariance_type):
    X, y = blobs(200)
    model = FlowMixture(covariance_type=covariance_type, refine="posterior", random_state=0)
    fitted = model.fit(np.c_[X, np.full(len(X), 0.1)])
    assert adjusted_rand_score(y, fitted.labels_) == 1
    assert (fitted.center_intervals_[..., 2] == 0.1).all()
    equal = model.fit(np.full((20, 3), 0.1))
    assert equal.n_clusters_ == 1
    assert np.isfinite(equal.score(np.full((20, 3), 0.1)))


def test_a_fit_without_draws_keeps_none_of_an_earlier_one():
    X, _ = blobs(100)
    model = FlowMixture(refine="posterior", random_state=0).fit(X).set_params(refine="em").fit(X)
    assert not hasattr(model, "label_draws_")
    with pytest.raises(ValueError, match="set refine='posterior'"):
        model.co_assignment()


def test_weights_that_are_shares_are_refused():
    X, _ = blobs(100)
    with pytest.raises(ValueError, match="how many rows a row stands for"):
        FlowMixture().fit(X, sample_weight=np.full(100, 0.01))


def test_rows_far_away_have_probabilities_and_no_rows_cannot_be_drawn():
    X, _ = blobs(100)
    fitted = FlowMixture(random_state=0).fit(X)
    np.testing.assert_allclose(fitted.predict_proba([[1e150, 1e150]]).sum(1), 1)
    with pytest.raises(ValueError, match="n_samples=0 should be at least 1"):
        fitted.sample(0)


@pytest.mark.filterwarnings("ignore:One cluster was found")
def test_kinds_that_the_rows_do_not_determine_are_not_tried(monkeypatch):
    tried = []
    monkeypatch.setattr(search, "fewer_clusters", lambda *given: tried.append(given[1].kind) or fewer_clusters(*given))
    FlowMixture(random_state=0).fit(np.random.default_rng(0).normal(size=(20, 30)))
    assert set(tried) == {"tied-spherical", "spherical", "diag"}
    tried.clear()
    FlowMixture(covariance_type="full", random_state=0).fit(np.random.default_rng(0).normal(size=(20, 30)))
    assert "full" in tried


@pytest.mark.parametrize("settings", [{}, {"outliers": "auto"}, {"refine": "posterior"}])
def test_a_column_whose_squares_vanish_changes_nothing(settings):
    """It ended in a LinAlgError."""
    X, _ = blobs()
    tiny = 1e-310 * np.random.default_rng(0).normal(size=(len(X), 1))
    plain = FlowMixture(random_state=0, network="flow-d8", **settings).fit(X)
    wide = FlowMixture(random_state=0, network="flow-d8", **settings).fit(np.hstack([X, tiny]))
    assert wide.n_clusters_ == plain.n_clusters_
    assert adjusted_rand_score(wide.labels_, plain.labels_) > 0.95


@pytest.mark.parametrize(("settings", "type_"), [({"covariance_type": "full"}, "type full"), ({}, "tied, full")])
def test_one_cluster_for_want_of_rows_warns(settings, type_):
    X = np.random.default_rng(0).normal(size=(40, 30))
    with pytest.warns(UserWarning, match=f"40 rows of 30 columns do not determine several clusters.*{type_}"):
        assert FlowMixture(random_state=0, **settings).fit(X).n_clusters_ == 1


def test_verbose_tells_the_steps(capsys):
    X, _ = blobs()
    quiet, told = FlowMixture(random_state=0).fit(X), FlowMixture(random_state=0, verbose=1).fit(X)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("FlowMixture: the flow finds")
    assert any(line.startswith("FlowMixture: diag: ") for line in lines)
    np.testing.assert_array_equal(quiet.labels_, told.labels_)
