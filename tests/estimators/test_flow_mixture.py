import time

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

from coterie.estimators.flow_mixture import FlowMixture


def blobs(n_samples=400, centers=4, n_features=2, seed=0):
    rng = np.random.default_rng(seed)
    places = 10 * np.eye(centers, max(centers, n_features))[:, :n_features] if n_features >= centers else None
    if places is None:
        angle = 2 * np.pi * np.arange(centers) / centers
        places = 5 * np.stack([np.cos(angle), np.sin(angle)], 1)[:, :n_features]
    return make_blobs(n_samples, centers=places, cluster_std=0.5, random_state=int(rng.integers(1000)))


@parametrize_with_checks([FlowMixture(snr_db=10.0)])
def test_flow_mixture_passes_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("name", ["check_dataframe_column_names_consistency", "check_param_validation"])
@pytest.mark.filterwarnings("ignore:X (does not have|has)")
def test_flow_mixture_passes_checks_that_are_left_out(name):
    getattr(estimator_checks, name)("FlowMixture", FlowMixture(snr_db=10.0))


@pytest.mark.parametrize("snr_db", [None, 15.0])
def test_separated_blobs_are_found_without_their_number(snr_db):
    X, y = blobs()
    fitted = FlowMixture(snr_db=snr_db, random_state=0).fit(X)
    assert adjusted_rand_score(y, fitted.labels_) > 0.95
    assert fitted.weights_[:4].sum() > 0.98
    assert (fitted.predict(X) == fitted.labels_).all()
    assert len(fitted.snr_path_) == (0 if snr_db else len(fitted.bic_path_))


def test_more_columns_than_the_network_knows_are_reduced():
    X, y = blobs(n_features=12)
    fitted = FlowMixture(random_state=0).fit(X)
    assert fitted.cluster_centers_.shape[1] == 12
    assert adjusted_rand_score(y, fitted.labels_) > 0.9


def test_shift_and_scale_of_the_data_carry_over():
    X, _ = blobs()
    plain = FlowMixture(snr_db=15.0).fit(X)
    moved = FlowMixture(snr_db=15.0).fit(1000 * X - 7e4)
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
    np.testing.assert_allclose(fitted.covariance_, fitted.var_ * np.eye(2))


def test_saved_estimators_come_back(tmp_path):
    from coterie import load

    X, _ = blobs()
    fitted = FlowMixture(snr_db=12.0).fit(X)
    fitted.save(tmp_path / "model.safetensors")
    loaded = load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(loaded.predict_proba(X), fitted.predict_proba(X))


def test_rows_beyond_the_context_are_labelled_too():
    X, y = blobs(n_samples=5000)
    began = time.perf_counter()
    fitted = FlowMixture(snr_db=15.0, max_context=300, random_state=0).fit(X)
    assert time.perf_counter() - began < 30
    assert adjusted_rand_score(y, fitted.labels_) > 0.95


def test_one_row_is_refused():
    with pytest.raises(ValueError, match="n_samples=1"):
        FlowMixture().fit([[1.0, 2.0]])


def test_the_posteriors_average_is_a_measure_near_the_centres():
    X, _ = blobs(n_samples=300)
    fitted = FlowMixture(snr_db=15.0, refine="posterior").fit(X)
    assert fitted.atoms_.shape == X.shape
    distance = np.linalg.norm(fitted.atoms_[:, None] - fitted.cluster_centers_[None, :4], axis=-1).min(1)
    assert np.quantile(distance, 0.9) < 0.3


def test_rows_whose_squared_distances_vanish_are_refused():
    X = 1e-200 * np.random.default_rng(0).normal(size=(30, 2))
    with pytest.raises(ValueError, match="scale the columns"):
        FlowMixture().fit(X)
