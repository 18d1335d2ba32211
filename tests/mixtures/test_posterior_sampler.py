import numpy as np
import pytest
from scipy import stats
from scipy.integrate import trapezoid

from coterie.mixtures import posterior_sampler
from coterie.mixtures.gaussians import KINDS
from coterie.mixtures.posterior_sampler import FREEDOM, WITHIN, Sweeps, posterior_draws

DIM, MOST, ROWS = 2, 16, 25


def drawn_covariances(kind, n_clusters, rng):
    """Covariance matrices (K, D, D) from the prior."""
    if kind == "tied":
        one = stats.invwishart(DIM + FREEDOM, WITHIN * np.eye(DIM)).rvs(random_state=rng)
        return np.repeat(one[None], n_clusters, 0)
    if kind == "tied-spherical":
        return np.repeat((DIM * WITHIN / 2 / rng.gamma(DIM / 2) * np.eye(DIM))[None], n_clusters, 0)
    if kind == "full":
        freedom = DIM + 1.0
        scale = stats.wishart(freedom, np.eye(DIM) * WITHIN * (FREEDOM - 1) / freedom).rvs(random_state=rng)
        prior = stats.invwishart(DIM + FREEDOM, scale)
        return np.stack([prior.rvs(random_state=rng) for _ in range(n_clusters)])
    size = (1, 1) if kind == "spherical" else (1, DIM)
    scale = rng.gamma(1.0, 1.5 * WITHIN, size=size)
    shape = (n_clusters, 1) if kind == "spherical" else (n_clusters, DIM)
    return (scale / rng.gamma(2.5, size=shape))[..., None] * np.eye(DIM)


def drawn_mixture(kind, noise, rng):
    p = 1 / np.arange(1, MOST + 1)
    n_clusters = 1 + rng.choice(MOST, p=p / p.sum())
    covariances = drawn_covariances(kind, n_clusters, rng)
    centers, weights = rng.normal(size=(n_clusters, DIM)), rng.dirichlet(np.ones(n_clusters))
    labels = rng.choice(n_clusters, size=ROWS, p=weights)
    rows = np.stack([rng.multivariate_normal(centers[k], covariances[k]) for k in labels])
    if noise:
        lost = rng.random(ROWS) < rng.beta(*posterior_sampler.NOISE_PRIOR)
        rows[lost], labels[lost] = rng.uniform(-4, 4, size=(lost.sum(), DIM)), -1
    return rows, labels


@pytest.mark.parametrize("noise", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_draws_that_start_at_the_truth_are_distributed_as_the_truth(kind, noise):
    # the truth is a draw from the posterior: over many data sets its statistics are those of the chain's last draw
    rng = np.random.default_rng(KINDS.index(kind))
    differences = []
    for _ in range(200):
        rows, labels = drawn_mixture(kind, noise, rng)
        if labels.max() < 0:
            continue
        centers, drawn = np.zeros((1, MOST, DIM)), np.zeros((1, ROWS), dtype=np.int16)
        log_density = -DIM * np.log(8.0)
        posterior_sampler._chain(
            rows, labels.copy(), KINDS.index(kind), np.ones(DIM), noise, log_density, rng, 40, 1, centers, drawn
        )
        statistics = [
            (len(np.unique(each[each >= 0])), np.bincount(each + 1)[1:].max(initial=0), (each < 0).sum())
            for each in (drawn[0].astype(int), labels)
        ]
        differences.append(np.subtract(*statistics))
    difference = np.array(differences, dtype=float)
    error = difference.std(0) / np.sqrt(len(difference))
    assert (np.abs(difference.mean(0)) <= 4 * error).all(), (difference.mean(0), error)


def test_two_rows_share_a_cluster_as_often_as_the_marginal_likelihood_says():
    # tied-spherical: integrate the variance numerically, and sum over K for both partitions of two rows
    rows = np.array([[0.3, 0.0], [-0.4, 0.1]])
    variances = np.geomspace(1e-4, 1e3, 4000)
    prior = stats.invgamma(DIM / 2, scale=DIM * WITHIN / 2).pdf(variances)
    # in every column, sum and difference of the two rows are independent
    total, gap = rows.sum(0)[:, None], (rows[0] - rows[1])[:, None]
    apart = stats.norm.pdf(rows.reshape(-1, 1), scale=np.sqrt(1 + variances)).prod(0)
    shared = stats.norm.pdf(total, scale=np.sqrt(4 + 2 * variances)) * stats.norm.pdf(gap, scale=np.sqrt(2 * variances))
    together = (2 * shared).prod(0)
    k = np.arange(1, MOST + 1)
    prior_k = 1 / k / (1 / k).sum()
    same = (prior_k * 2 / (k + 1)).sum()  # probability of one cluster for two rows, weights uniform on the simplex
    odds = same * trapezoid(together * prior, variances) / ((1 - same) * trapezoid(apart * prior, variances))
    centers, labels = np.zeros((20_000, MOST, DIM)), np.zeros((20_000, 2), dtype=np.int16)
    rng = np.random.default_rng(3)
    posterior_sampler._chain(
        rows, np.zeros(2, dtype=np.int64), 0, np.ones(DIM), False, -np.inf, rng, 100, 2, centers, labels
    )
    found = (labels[:, 0] == labels[:, 1]).mean()
    assert found == pytest.approx(odds / (1 + odds), abs=0.02)


@pytest.mark.parametrize("kind", KINDS)
def test_draws_do_not_depend_on_shift_and_scale_of_the_data(kind):
    rng = np.random.default_rng(0)
    labels = np.arange(3).repeat(40)
    rows = 6 * rng.normal(size=(3, 2))[labels] + rng.normal(size=(120, 2))
    sweeps = Sweeps(5, 2, 4)
    plain = posterior_draws(rows, labels, kind, np.random.default_rng(1), sweeps)
    moved = posterior_draws(100 * rows - 40, labels, kind, np.random.default_rng(1), sweeps)
    np.testing.assert_array_equal(plain.labels_JN, moved.labels_JN)
    in_use = plain.centers_JMD.any(-1)
    np.testing.assert_allclose(moved.centers_JMD[in_use], 100 * plain.centers_JMD[in_use] - 40, rtol=1e-6)


def test_clear_clusters_and_noise_are_found_again():
    rng = np.random.default_rng(2)
    labels = np.append(np.arange(3).repeat(80), np.full(24, -1))
    rows = np.array([[-8.0, 0.0], [8.0, 0.0], [0.0, 9.0], [0.0, 0.0]])[labels] + rng.normal(size=(264, 2)) * [1.5, 0.4]
    rows[labels < 0] = rng.uniform(-20, 20, size=(24, 2))
    draws = posterior_draws(rows, labels, "full", rng, Sweeps(50, 5, 20), noise=True)
    assert draws.n_clusters_proba.argmax() == 2
    assert draws.n_clusters_proba.sum() == pytest.approx(1)
    assert ((draws.labels_JN < 0).mean(0)[labels >= 0] < 0.5).mean() > 0.97
    assert ((draws.labels_JN < 0).mean(0)[labels < 0] > 0.5).mean() > 0.8
