import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from coterie import starts
from coterie.starts import row_order

INITS = ["k-means++", "random", "spectral"]


def rows(seed, n=120, d=3, dtype=np.float64):
    return np.random.RandomState(seed).normal(size=(n, d)).astype(dtype)


def choose(X, k, init, seed=0, **kwargs):
    return starts.choose(X, k, init, np.random.RandomState(seed), **kwargs)


@pytest.mark.parametrize("init", INITS)
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000), n_clusters=st.integers(1, 12))
def test_a_row_of_weight_two_is_the_row_twice_in_any_order(init, seed, n_clusters):
    rng = np.random.RandomState(seed)
    X, times = rows(seed, n=60), rng.randint(1, 4, 60)
    repeated = np.repeat(X, times, axis=0)[rng.permutation(times.sum())]
    weighted = choose(X, n_clusters, init, sample_weight=times.astype(float))
    np.testing.assert_allclose(choose(repeated, n_clusters, init), weighted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("init", INITS)
def test_sparse_and_dense_copies_begin_in_the_same_place(init):
    X = rows(3) * (rows(4) > 0.3)
    dense, compressed = choose(X, 6, init), choose(sparse.csr_matrix(X), 6, init)
    np.testing.assert_allclose(compressed, dense, rtol=1e-9, atol=1e-12)


def test_single_and_double_precision_copies_hash_equally_and_zero_has_no_sign():
    X = rows(5, dtype=np.float32)
    X[0, 0] = 0.0
    Y = X.astype(np.float64)
    Y[0, 0] = -0.0
    np.testing.assert_array_equal(row_order.hash_rows(X, 1), row_order.hash_rows(Y, 1))


def test_multiplying_by_a_power_of_two_keeps_the_order_of_the_rows_and_tells_a_row_from_its_double():
    X = np.concatenate([rows(8), 2 * rows(8)[:40], np.zeros((1, 3)), rows(8)[:5]])
    X[3, 1] = 0.0
    plain = row_order.hash_rows(X, 1)
    assert len(np.unique(plain)) == len(np.unique(X, axis=0))
    for exponent in (-900, -3, 1, 900):
        order = np.argsort(row_order.hash_rows(np.ldexp(X, exponent), 1), kind="stable")
        np.testing.assert_array_equal(order, np.argsort(plain, kind="stable"))


@pytest.mark.parametrize("trim", [0.0, 0.1])
@pytest.mark.parametrize("init", INITS)
@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_matrix])
def test_the_start_of_scaled_rows_is_the_scaled_start(init, convert, trim):
    X = rows(9) * (rows(10) > -0.5)
    if trim and convert is not np.asarray:
        pytest.skip("outliers are trimmed from dense rows only")
    for exponent in (-40, 1, 37):
        one, other = choose(convert(X), 6, init, trim=trim), choose(convert(np.ldexp(X, exponent)), 6, init, trim=trim)
        np.testing.assert_allclose(np.ldexp(other, -exponent), one, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("init", INITS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_number_of_threads_changes_nothing(init, dtype):
    X = rows(6, n=40_000, d=5, dtype=dtype)
    one, three = (choose(X, 9, init, n_threads=t) for t in (1, 3))
    np.testing.assert_array_equal(one, three)
    assert one.dtype == dtype


@pytest.mark.parametrize("init", ["k-means++", "random"])
def test_starts_are_distinct_rows_of_the_data(init):
    X = np.repeat(rows(7, n=9), 50, axis=0)
    centers = choose(X, 9, init)
    np.testing.assert_array_equal(np.unique(centers, axis=0), np.unique(X, axis=0))


def plain_kmeans_plus_plus_draws(X, weights, targets):
    """Greedy k-means++ in four lines per round on rows in canonical order."""
    order = np.argsort(row_order.hash_rows(X, 1))
    X, weights = X[order], weights[order]
    centers = [X[np.searchsorted(np.cumsum(weights), targets[0][0] * weights.sum())]]
    for round_targets in targets[1:]:
        sq = np.min([((X - c) ** 2).sum(1) for c in centers], axis=0)
        cumulative = np.cumsum(weights * sq)
        candidates = X[np.searchsorted(cumulative, round_targets * cumulative[-1])]
        potentials = [(weights * np.minimum(sq, ((X - z) ** 2).sum(1))).sum() for z in candidates]
        centers.append(candidates[np.argmin(potentials)])
    return np.array(centers)


@pytest.mark.parametrize("seed", range(10))
def test_k_means_plus_plus_with_skips_equals_the_plain_algorithm(seed):
    rng = np.random.RandomState(seed)
    X, weights, k = rng.normal(size=(500, 4)) + 10 * rng.randint(0, 5, (500, 1)), rng.rand(500) + 0.1, 12
    targets = [rng.random_sample(1)] + [rng.random_sample(2 + int(np.log(k))) for _ in range(k - 1)]

    class Recorded:
        def __init__(self):
            self.calls = iter(targets)

        def random_sample(self, size):
            return next(self.calls)

    expected = plain_kmeans_plus_plus_draws(X, weights, targets)
    np.testing.assert_array_equal(starts.choose(X, k, "k-means++", Recorded(), weights), expected)


def test_k_means_plus_plus_finds_separated_blobs_and_beats_random():
    rng = np.random.RandomState(0)
    X = rng.normal(size=(2_000, 2)) * 0.01 + rng.randint(0, 8, (2_000, 1)) * 10
    potentials = {
        init: [np.min(((X[:, None] - choose(X, 8, init, seed=s)) ** 2).sum(2), axis=1).sum() for s in range(10)]
        for init in ("k-means++", "random")
    }
    assert max(potentials["k-means++"]) < min(potentials["random"]) / 10


def test_random_draws_by_weight():
    X, weights = np.arange(4.0)[:, None], np.array([1.0, 1.0, 1.0, 7.0])
    rng = np.random.RandomState(0)
    drawn = [starts.choose(X, 1, "random", rng, weights)[0, 0] for _ in range(1_000)]
    assert abs(np.mean(np.equal(drawn, 3)) - 0.7) < 0.05


def test_spectral_start_of_separated_blobs_is_their_means():
    rng = np.random.RandomState(1)
    true = rng.normal(size=(4, 30)) * 20
    labels = np.arange(400) % 4
    X = true[labels] + rng.normal(size=(400, 30))
    centers = choose(X, 4, "spectral")
    means = np.array([X[labels == k].mean(0) for k in range(4)])
    nearest = ((centers[:, None] - means) ** 2).sum(2).argmin(1)
    assert sorted(nearest) == [0, 1, 2, 3]
    np.testing.assert_allclose(centers, means[nearest], atol=1e-10)


def test_an_array_and_a_callable_are_taken_as_they_are():
    X = rows(8, dtype=np.float32)
    np.testing.assert_array_equal(choose(X, 2, X[:2].tolist()), X[:2])
    called = choose(X, 3, lambda data, n_clusters, random_state: data[:n_clusters])
    np.testing.assert_array_equal(called, X[:3])


@pytest.mark.parametrize(
    "init, message",
    [("kmeans", "init must be one of"), (np.ones((3, 3)), "must have shape"), ([[np.nan] * 3] * 2, "NaN")],
)
def test_a_wrong_init_says_what_must_hold(init, message):
    with pytest.raises(ValueError, match=message):
        choose(rows(9), 2, init)


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("init", ["k-means++", "random", "spectral"])
def test_with_fewer_distinct_rows_than_clusters_every_row_is_a_centre(convert, init):
    X = convert(np.repeat(np.eye(3), 100, axis=0))
    assert len(np.unique(choose(X, 5, init), axis=0)) == 3
    assert len(choose(X, 3, init)) == 3
