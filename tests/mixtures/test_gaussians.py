import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.mixture import GaussianMixture

from coterie.mixtures.gaussians import KINDS, Gaussians, shares_of
from coterie.mixtures.moments import Rows, estimate_from, run_em
from coterie.mixtures.search import best_mixture, fewer_clusters, merge_costs, merged, start_from


def ellipses(n_samples=400, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(3, size=n_samples)
    roots = np.array([[[3.0, 0.0], [2.0, 0.5]], [[0.5, 0.0], [0.0, 0.5]], [[0.4, 0.0], [-2.0, 0.8]]])
    places = np.array([[0.0, 0.0], [6.0, -5.0], [9.0, 6.0]])
    return places[labels] + np.einsum("nij,nj->ni", roots[labels], rng.normal(size=(n_samples, 2))), labels


@pytest.mark.parametrize("kind", KINDS)
def test_densities_are_those_of_scikit_learn(kind):
    X, labels = ellipses()
    mixture = start_from(Rows.of(X), labels, kind, noise=False)
    other = GaussianMixture(3, covariance_type="spherical" if kind == "tied-spherical" else kind)
    other.weights_, other.means_ = mixture.weights_K, mixture.centers_KD
    covariances = np.broadcast_to(mixture.covariances, (3,)) if kind == "tied-spherical" else mixture.covariances
    root = np.linalg.cholesky(covariances) if kind in ("tied", "full") else np.sqrt(covariances)
    other.precisions_cholesky_ = np.swapaxes(np.linalg.inv(root), -1, -2) if kind in ("tied", "full") else 1 / root
    np.testing.assert_allclose(logsumexp(mixture.log_joint(X), axis=1), other.score_samples(X))
    other.covariances_ = covariances
    assert mixture.n_parameters == other._n_parameters() - (2 if kind == "tied-spherical" else 0)


@pytest.mark.parametrize("noise", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_em_raises_the_likelihood_and_rows_that_count_twice_are_like_two_rows(kind, noise):
    X, labels = ellipses(150)
    counts = np.random.default_rng(1).integers(1, 3, size=len(X)).astype(float)
    counted, repeated = Rows.of(X, counts), Rows.of(np.repeat(X, counts.astype(int), 0))
    labels[::3] = 0  # a start away from the truth, where EM has something to do
    start = start_from(counted, labels, kind, noise)
    first, last = (run_em(counted, start, steps).log_likelihood for steps in (1, 20))
    assert last > first - 1e-6 * abs(first)
    ours, theirs = (run_em(rows, start, 10).mixture for rows in (counted, repeated))
    np.testing.assert_allclose(ours.covariances, theirs.covariances, rtol=1e-6)
    np.testing.assert_allclose(ours.weights_K.sum() + ours.noise, 1)


def test_the_density_with_noise_is_constant_on_the_box():
    X, labels = ellipses()
    mixture = start_from(Rows.of(X), labels, "full", noise=True)
    joint = mixture.log_joint(X)
    assert joint.shape[1] == 4
    volume = np.ptp(X, axis=0).prod()
    np.testing.assert_allclose(np.exp(joint[:, -1]), mixture.noise / volume)
    np.testing.assert_allclose(shares_of(joint)[0].sum(1), 1)


@pytest.mark.parametrize("kind", KINDS)
def test_merged_clusters_have_the_moments_of_both_and_the_cheapest_merge_is_the_closest(kind):
    X, labels = ellipses()
    split = labels + 3 * ((labels == 0) & (np.arange(len(X)) % 2 == 0))  # two random halves of one cluster
    rows = Rows.of(X)
    mixture = start_from(rows, split, kind, noise=False)
    cost = merge_costs(mixture)
    assert np.unravel_index(cost.argmin(), cost.shape) == (0, 3)
    np.testing.assert_allclose(merge_costs(mixture, [2])[0], cost[2])
    one = merged(mixture, 0, 3)
    np.testing.assert_allclose(one.centers_KD, start_from(rows, labels, kind, noise=False).centers_KD)
    np.testing.assert_allclose(one.covariances, start_from(rows, labels, kind, noise=False).covariances, rtol=0.1)


def test_the_kind_and_the_number_of_clusters_are_found():
    X, labels = ellipses(600)
    start = np.random.default_rng(0).integers(4, size=len(X)) + 4 * labels
    fit, bic = best_mixture(Rows.of(X), start)
    assert (fit.mixture.kind, fit.mixture.n_clusters) == ("full", 3)
    assert fit.converged
    again, other = fewer_clusters(Rows.of(X), start_from(Rows.of(X), start, "diag", noise=False))
    assert again.mixture.kind == "diag"
    assert other > bic


def test_a_cluster_of_one_row_has_a_covariance():
    X, labels = ellipses(50)
    labels[0] = 3
    rows = Rows.of(X)
    mixture = estimate_from(rows, np.eye(4)[labels], "full", noise=False)
    assert np.linalg.eigvalsh(mixture.covariances[3]).min() > 0
    assert isinstance(mixture, Gaussians)
