import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.datasets import make_blobs
from sklearn.mixture import GaussianMixture

from coterie.zeroshot import coassociation
from coterie.zeroshot.coassociation import kmeans, mixture
from coterie.zeroshot.hierarchies import ward


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
    _, bic = mixture(X, np.ones((len(X), 1)), 0)
    assert bic == pytest.approx(GaussianMixture(1).fit(X).bic(X), rel=1e-3)
