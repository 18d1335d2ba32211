"""Relations that hold whatever the right answer is: scaled, permuted and duplicated rows, threads, forks."""

import os
import warnings
from functools import cache

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

import coterie
from coterie.catalogue import CATALOGUE
from tests.forked import forked

RANDOM = np.random.RandomState(0)
CENTERS = np.array([[0.0, 0.0, 8.0], [8.0, 0.0, 0.0], [0.0, 8.0, 0.0]])
TRUTH = np.repeat([0, 1, 2], 24)
X = CENTERS[TRUTH] + 0.7 * RANDOM.randn(72, 3)
SETTINGS = {
    "FlowMixture": {},
    "ZeroShotClusterer": {},
    "InContextClusterer": {"n_clusters": 3, "n_init": 2},
    "VAEMixture": {"n_clusters": 3, "max_iter": 2, "hidden_size": 4, "init": TRUTH},
    "KMedoids": {"n_clusters": 3},
}
NO_WEIGHTS = {"InContextClusterer", "VAEMixture", "ZeroShotClusterer"}
SEED = {"random_state": 0}


def make(name: str, **more):
    settings = {**SETTINGS.get(name, {"n_clusters": 3}), **SEED, **more}
    kind = getattr(coterie, name)
    return kind(**{key: value for key, value in settings.items() if key in kind().get_params()})


def fit(estimator, rows, **weights):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # not of convergence here
        return estimator.fit(rows, **weights)


@cache
def fitted(name: str):
    return fit(make(name), X)


@pytest.mark.parametrize("name", CATALOGUE)
def test_the_clusters_are_those_that_are_there(name):
    model = fitted(name)
    kept = model.labels_ >= 0  # without outliers
    assert kept.mean() > 0.9
    assert adjusted_rand_score(TRUTH[kept], model.labels_[kept]) == 1


@pytest.mark.parametrize("name", CATALOGUE)
def test_labels_are_the_predictions_for_the_same_rows(name):
    model = fitted(name)
    assert model.labels_.dtype == np.int32
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    np.testing.assert_array_equal(np.concatenate([model.predict(X[:1]), model.predict(X[1:])]), model.labels_)


@pytest.mark.parametrize("exponent", [-66, 40, 66])
@pytest.mark.parametrize("name", CATALOGUE)
def test_multiplying_the_rows_by_a_power_of_two_changes_no_label(name, exponent):
    model = fit(make(name), np.ldexp(X, exponent))
    if name == "InContextClusterer":  # the order of its clusters may change
        assert adjusted_rand_score(model.labels_, fitted(name).labels_) == 1
    else:
        np.testing.assert_array_equal(model.labels_, fitted(name).labels_)
    np.testing.assert_array_equal(model.predict(np.ldexp(X, exponent)), model.labels_)


@pytest.mark.parametrize("name", CATALOGUE)
def test_the_order_of_the_rows_does_not_matter(name):
    order = np.random.RandomState(1).permutation(len(X))
    more = {"init": TRUTH[order]} if name == "VAEMixture" else {}
    model, before = fit(make(name, **more), X[order]), fitted(name).labels_[order]
    kept = (model.labels_ >= 0) & (before >= 0)
    assert kept.mean() > 0.9
    assert adjusted_rand_score(model.labels_[kept], before[kept]) == 1


CHANGES = {
    "moved": lambda rows: rows + 64.0,
    "a constant column more": lambda rows: np.column_stack([rows, np.full(len(rows), 5.0)]),
    "columns in another order": lambda rows: rows[:, [2, 0, 1]],
    "every row twice": lambda rows: np.repeat(rows, 2, axis=0),
    "in single precision": lambda rows: rows.astype(np.float32),
    "in Fortran's order": np.asfortranarray,
}
DIRECTIONS = {"moved", "a constant column more"}  # change what SphericalKMeans compares


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", CATALOGUE)
def test_what_says_nothing_new_changes_no_cluster(name, change):
    if name == "SphericalKMeans" and change in DIRECTIONS:
        pytest.skip("directions from the origin are other rows")
    rows = CHANGES[change](X)
    init = {"init": np.repeat(TRUTH, 2)} if name == "VAEMixture" and len(rows) > len(X) else {}
    labels, truth = fit(make(name, **init), rows).labels_, np.repeat(TRUTH, len(rows) // len(X))
    kept = labels >= 0
    assert kept.mean() > 0.9
    assert adjusted_rand_score(truth[kept], labels[kept]) == 1


@pytest.mark.parametrize("name", ["FlowMixture", "RobustKMeans", "TrimmedKMeans", "ZeroShotClusterer"])
def test_one_distant_row_leaves_the_others_where_they_were(name):
    labels = fit(make(name), np.vstack([X, [[90.0, -90.0, 90.0]]])).labels_[:-1]
    kept = labels >= 0
    assert kept.mean() > 0.9
    assert adjusted_rand_score(TRUTH[kept], labels[kept]) == 1


@pytest.mark.parametrize("name", [name for name in CATALOGUE if name not in NO_WEIGHTS])
def test_a_row_of_weight_two_is_a_row_twice(name):
    weight = 1.0 + (np.arange(len(X)) % 3 == 0)
    more = {} if name == "FlowMixture" else {"init": CENTERS + 0.1}
    rows = np.repeat(np.arange(len(X)), weight.astype(int))
    one, two = fit(make(name, **more), X, sample_weight=weight), fit(make(name, **more), X[rows])
    np.testing.assert_allclose(one.cluster_centers_, two.cluster_centers_, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(one.predict(X), two.predict(X))


@pytest.mark.parametrize("name", [name for name in CATALOGUE if "n_jobs" in getattr(coterie, name)().get_params()])
def test_threads_change_nothing(name):
    np.testing.assert_array_equal(fit(make(name, n_jobs=2), X).labels_, fitted(name).labels_)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.parametrize("name", CATALOGUE)
def test_a_forked_process_predicts_the_same(name):
    model = fitted(name)
    np.testing.assert_array_equal(forked(lambda: model.predict(X)), model.labels_)


def test_soft_kmeans_finds_clusters_of_rows_near_3e_20():
    """Squares of such numbers are not representable in single precision, and nearly not in double precision."""
    for dtype in (np.float32, np.float64):
        model = fit(make("SoftKMeans"), (3e-20 * X).astype(dtype))
        assert adjusted_rand_score(TRUTH, model.labels_) == 1


@pytest.mark.parametrize("offset", [1e4, 1e5])
def test_spherical_predictions_are_the_labels_in_single_precision_with_an_offset(offset):
    rows = (np.random.RandomState(2).randn(300, 4) + offset).astype(np.float32)
    model = fit(make("SphericalKMeans", n_clusters=5), rows)
    np.testing.assert_array_equal(model.predict(rows), model.labels_)


def test_random_starts_of_tiny_rows_are_distinct():
    model = fit(make("KMeans", init="random", n_init=3), 1e-25 * X)
    assert adjusted_rand_score(TRUTH, model.labels_) == 1


@pytest.mark.parametrize("factor", [1e155, 1e-155])
def test_zero_shot_predicts_rows_of_any_size(factor):
    model = fit(make("ZeroShotClusterer"), factor * X)
    np.testing.assert_array_equal(model.predict(factor * X), fitted("ZeroShotClusterer").labels_)
    far = fitted("ZeroShotClusterer").predict(np.array([[1e155, 0.0, 0.0], [0.0, 1e155, 0.0]]))
    np.testing.assert_array_equal(far, fitted("ZeroShotClusterer").predict(1e3 * CENTERS[1:]))
