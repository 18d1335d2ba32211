"""The five half-moons are fixed."""

import numpy as np
from sklearn.metrics import adjusted_rand_score

from coterie import VAEMixture
from coterie_research.mixture_of_vaes.half_moons import LAYOUT, N_SAMPLES, NOISE, five_moons


def test_they_are_reproducible_equal_in_number_and_near_their_half_circles():
    X, labels = five_moons(3)
    again, _ = five_moons(3)
    np.testing.assert_array_equal(X, again)
    assert X.shape == (N_SAMPLES, 2)
    assert np.bincount(labels).tolist() == [N_SAMPLES // 5] * 5
    centers = np.array([center for center, _ in LAYOUT])[labels]
    radius = np.linalg.norm(X - centers, axis=1)
    assert abs(radius.mean() - 1) < 0.01
    assert abs(radius.std() - NOISE) < 0.01


def test_without_noise_no_two_moons_touch():
    X, labels = five_moons(0, n_samples=2000, noise=0.0)
    distance = np.linalg.norm(X[:, None] - X[None], axis=2)
    distance[labels[:, None] == labels[None]] = np.inf
    assert distance.min() > 4 * NOISE


def test_half_moons_are_separated_and_their_samples_lie_on_them():
    X, truth = five_moons(0)
    mixture = VAEMixture(5, random_state=0).fit(X)
    assert mixture.likelihood_ == "gaussian"
    assert adjusted_rand_score(truth, mixture.labels_) > 0.95
    rows, labels = mixture.sample(200)
    nearest = np.linalg.norm(rows[:, None] - X[None], axis=2)
    assert np.median(nearest.min(1)) < 0.1
    assert np.mean(mixture.labels_[nearest.argmin(1)] == labels) > 0.9
