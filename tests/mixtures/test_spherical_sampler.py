import numpy as np
import pytest
from scipy.special import gammaln

from coterie.mixtures import spherical_sampler
from coterie.mixtures.spherical_sampler import Sweeps, _draw_concentration, draw_components, temperatures

SHORT = Sweeps(burn_in=5, apart=3, n_draws=30)
FAR = np.array([[0.0, 0.0], [20.0, 0.0], [0.0, 20.0]])


def blobs(rng, centers=FAR, counts=(40, 40, 40)):
    labels = np.repeat(np.arange(len(centers)), counts)
    return centers[labels] + rng.normal(size=(len(labels), centers.shape[1])), labels


def sample(x, start, rng, sweeps, **options):
    """Draws of the membership probabilities (J, N, K)."""
    return spherical_sampler.sample(x, start, rng, sweeps, **options).members(x)


def together(members):
    """Mean co-assignments (N, N)."""
    return np.einsum("jnk,jmk->nm", members, members) / len(members)


def test_far_clusters_keep_their_points():
    x, labels = blobs(np.random.default_rng(0))
    members = sample(x, FAR + 1, np.random.default_rng(1), SHORT)
    np.testing.assert_allclose(members.sum(-1), 1, atol=1e-12)
    np.testing.assert_allclose(together(members), labels[:, None] == labels, atol=1e-6)


def test_members_of_a_row_do_not_depend_on_the_others():
    x, _ = blobs(np.random.default_rng(0), FAR / 10)
    draws = spherical_sampler.sample(x, FAR / 10, np.random.default_rng(3), SHORT)
    np.testing.assert_array_equal(draws.members(x)[:, 7:9], draws.members(x[7:9]))


def test_the_same_seed_gives_the_same_draws():
    x, _ = blobs(np.random.default_rng(0))
    first, second = (sample(x, FAR, np.random.default_rng(3), SHORT) for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_place_and_scale_do_not_matter():
    x, _ = blobs(np.random.default_rng(0), FAR / 10)
    plain = sample(x, FAR / 10, np.random.default_rng(3), SHORT)
    moved = sample(1000 * x - 7, 100 * FAR - 7, np.random.default_rng(3), SHORT)
    np.testing.assert_allclose(moved, plain, atol=1e-6)


def test_co_assignments_are_calibrated():
    # over many data sets drawn from the prior, points are together as often as the posterior says
    rng = np.random.default_rng(5)
    said, true = [], []
    for number in range(150):
        share = rng.dirichlet([2.0] * 3) if number % 2 else np.full(3, 1 / 3)
        centers = np.exp(rng.uniform(np.log(0.02), np.log(100)) / 2) * rng.normal(size=(3, 2))
        labels = rng.choice(3, 40, p=share)
        x = centers[labels] + rng.normal(size=(40, 2))
        members = sample(x, centers, rng, SHORT, shares_K=share, var=1.0)
        upper = np.triu_indices(40, 1)
        said.append(together(members)[upper])
        true.append((labels[:, None] == labels)[upper])
    said, true = np.concatenate(said), np.concatenate(true)
    for low, high in ((0, 0.2), (0.2, 0.4), (0.4, 0.6), (0.6, 0.8), (0.8, 1)):
        inside = (said >= low) & (said <= high)
        assert inside.sum() > 2000
        assert true[inside].mean() == pytest.approx(said[inside].mean(), abs=0.05)


@pytest.mark.parametrize("n_replicas", [1, 4])
def test_a_start_that_splits_one_cluster_and_joins_two_is_left(n_replicas):
    places = 5 * np.eye(10)[:6]
    x, labels = blobs(np.random.default_rng(2), places, (25,) * 6)
    wrong = places.copy()
    wrong[0] = (places[0] + places[1]) / 2
    wrong[1], wrong[5] = (x[labels == 5][half].mean(0) for half in (slice(12), slice(12, None)))
    long, beta = Sweeps(burn_in=300, apart=5, n_draws=20), temperatures(n_replicas)
    found = together(sample(x, wrong, np.random.default_rng(4), long, inverse_temperatures=beta))
    assert found[labels[:, None] != labels].mean() < 0.02
    assert found[labels[:, None] == labels].mean() > 0.95


def test_replicas_sample_the_same_posterior():
    x, _ = blobs(np.random.default_rng(7), FAR / 10, (20, 20, 20))
    long = Sweeps(burn_in=50, apart=3, n_draws=600)
    one, many = (
        together(sample(x, FAR / 10, np.random.default_rng(8), long, inverse_temperatures=temperatures(n)))
        for n in (1, 4)
    )
    assert abs(one - many).mean() < 0.03


def test_the_concentration_follows_its_conditional_law():
    count, values = np.array([5.0, 3.0, 1.0]), np.array([1.0, 10.0])
    log_p = gammaln(3 * values) - gammaln(9 + 3 * values) - 3 * gammaln(values)
    log_p += np.array([gammaln(count + a).sum() for a in values])
    wanted = np.exp(log_p - log_p.max()) / np.exp(log_p - log_p.max()).sum()
    rng, work = np.random.default_rng(0), np.zeros(2)
    drawn = np.array([_draw_concentration(count, values, work, rng) for _ in range(4000)])
    assert (drawn == 1.0).mean() == pytest.approx(wanted[0], abs=0.03)


def test_centres_and_their_residual_agree():
    rng = np.random.default_rng(1)
    x, labels = blobs(rng)
    own = np.eye(3)[labels]
    center = np.zeros((3, 2))
    rest = spherical_sampler.draw_centers(center, own.T @ x, own.sum(0), 3, 1.0, 400.0, rng)
    assert rest + (x**2).sum() == pytest.approx(((x - center[labels]) ** 2).sum())
    assert abs(center - FAR).max() < 1


def test_equal_points_give_finite_draws():
    members = sample(np.ones((6, 2)), np.ones((2, 2)), np.random.default_rng(0), SHORT)
    assert np.isfinite(members).all()


def test_the_number_of_components_follows_its_conditional_law():
    # two clusters in use, three points: p(2, 3, 4) is in proportion to 1/24, 1/30, 1/40
    rng, work = np.random.default_rng(4), np.zeros(4)
    drawn = [draw_components(3.0, 2, 4, rng, work) for _ in range(4000)]
    shares = np.bincount(drawn, minlength=5) / 4000
    np.testing.assert_allclose(shares, [0, 0, 5 / 12, 4 / 12, 3 / 12], atol=0.03)
