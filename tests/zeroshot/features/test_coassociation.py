import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.datasets import make_blobs
from sklearn.mixture import GaussianMixture

from coterie.zeroshot.features import coassociation
from coterie.zeroshot.features.coassociation import kmeans, mixtures
from coterie.zeroshot.features.hierarchies import ward


@pytest.fixture(scope="module")
def blobs():
    X, labels = make_blobs(90, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)
    return (X - X.mean(axis=0)) / X.std(axis=0), labels


def test_points_of_separate_blobs_are_put_together_by_all_mixtures_of_their_number(blobs):
    X, labels = blobs
    found = np.empty((coassociation.FEATURES, 90, 90), dtype=np.float32)
    log_count = coassociation.write(X, X, ward(cdist(X, X)), found)
    assert np.exp(log_count) == pytest.approx(3, abs=0.2)
    same = labels[:, None] == labels
    np.testing.assert_allclose(found[-1][same], 1, atol=0.1)
    np.testing.assert_allclose(found[-1][~same], -1, atol=0.1)
    assert found.min() >= -1 - 1e-5
    assert found.max() <= 1 + 1e-5


def test_lloyds_algorithm_is_run_from_the_labels_given(blobs):
    X, labels = blobs
    start = labels.copy()
    start[:5] = (start[:5] + 1) % 3
    assert np.array_equal(kmeans(X, start, 6), labels)


def test_one_component_has_the_bic_of_scikit_learn(blobs):
    X, _ = blobs
    _, (bic,) = mixtures(X, [np.ones((len(X), 1))], 0)
    assert bic == pytest.approx(GaussianMixture(1).fit(X).bic(X), rel=1e-3)


def test_mixtures_are_fitted_together_as_each_alone(blobs):
    X, labels = blobs
    starts = [np.ones((len(X), 1)), np.eye(3)[labels], np.eye(2)[labels % 2]]
    together, bic = mixtures(X, starts, 8)
    for start, found, value in zip(starts, together, bic, strict=True):
        (alone,), (alone_value,) = mixtures(X, [start], 8)
        np.testing.assert_allclose(found, alone, atol=1e-9)
        np.testing.assert_allclose(found.sum(axis=1), 1)
        assert value == pytest.approx(alone_value)


def test_em_ends_where_that_of_scikit_learn_does():
    """With 900 rows the prior hardly counts."""
    rng = np.random.default_rng(0)
    X = np.r_[rng.normal(size=(600, 2)) * [1.0, 0.3], rng.normal(size=(300, 2)) + [2.5, 1.0]]
    start = np.eye(2)[(X[:, 0] > 1.5).astype(int)]
    (found,), _ = mixtures(X, [start], 60)
    fitted = GaussianMixture(
        2, means_init=[X[start[:, k] > 0].mean(axis=0) for k in range(2)], tol=1e-7, max_iter=500
    ).fit(X)
    assert np.abs(found - fitted.predict_proba(X)).mean() < 0.02
