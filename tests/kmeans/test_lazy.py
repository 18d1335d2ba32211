import subprocess
import sys
import textwrap
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans

from coterie.kmeans.lazy import Assigner, run
from coterie.kmeans.lazy.group_bounds import Grouping
from coterie.kmeans.refill import refill
from coterie.kmeans.statistics import Statistics


def plain_lloyd(X, centers, weights=None, max_iter=300):
    """Lloyd's algorithm in double precision with direct differences: labels, centres, iterations."""
    labels, k = None, len(centers)
    for iteration in range(1, max_iter + 1):
        sq = ((X[:, None] - centers) ** 2).sum(axis=2)
        new = sq.argmin(axis=1)
        own = sq[np.arange(len(X)), new]
        s = Statistics.of(X, new, own, k, weights)
        refill(X, new, own, s.sums, s.counts, weights)
        previous, centers = centers, s.centers(centers)
        if np.array_equal(labels, new) or np.array_equal(previous, centers):
            return new, centers, iteration
        labels = new
    return ((X[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1), centers, max_iter


def random_instance(seed):
    rng = np.random.RandomState(seed)
    n, d, k = rng.randint(20, 400), rng.choice([1, 2, 3, 5, 8, 17, 40]), rng.randint(1, 40)
    X = rng.normal(size=(n, d)) * rng.choice([0.01, 1, 100]) + rng.choice([0, 10])
    if seed % 3 == 0:
        X += rng.randint(0, 6, (n, 1)) * 5
    return X, X[rng.permutation(n)[: min(k, n)]].copy()


@pytest.mark.parametrize("seed", range(300))
def test_labels_equal_plain_lloyd_to_convergence(seed):
    X, start = random_instance(seed)
    labels, centers, n_iter = plain_lloyd(X, start)
    result = run(X, start, n_threads=1)
    np.testing.assert_array_equal(result.labels, labels)
    np.testing.assert_allclose(result.centers, centers, rtol=1e-10, atol=1e-12 * np.abs(X).max())
    assert result.n_iter == n_iter
    own = ((X - result.centers[result.labels]) ** 2).sum()
    assert result.inertia == pytest.approx(own, rel=1e-12)


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.lists(st.integers(-4, 4), min_size=2, max_size=2), min_size=1, max_size=40),
    k=st.integers(1, 20),
    data=st.data(),
)
def test_ties_go_to_the_lowest_index_and_labels_are_nearest_whatever_is_equal_or_empty(rows, k, data):
    X = np.array(rows, dtype=np.float64)
    start = X[data.draw(st.lists(st.integers(0, len(X) - 1), min_size=k, max_size=k))]
    result = run(X, start, n_threads=1, max_iter=50)
    # where means round, a tie may go either way; distances agree nonetheless
    sq = ((X[:, None] - result.centers) ** 2).sum(axis=2)
    own = sq[np.arange(len(X)), result.labels]
    np.testing.assert_allclose(own, sq.min(axis=1), rtol=1e-12, atol=1e-12)
    first = ((X[:, None] - start) ** 2).sum(axis=2).argmin(axis=1)
    np.testing.assert_array_equal(Assigner(X, n_threads=1).assign(start), first)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), dtype=st.sampled_from([np.float32, np.float64]))
def test_a_remembering_assigner_gives_what_a_new_one_gives_for_any_centres(seed, dtype):
    rng = np.random.RandomState(seed)
    n, d, k = rng.randint(50, 600), rng.randint(1, 70), rng.randint(1, 60)
    X = rng.normal(size=(n, d)).astype(dtype)
    centers = rng.normal(size=(k, d))
    assigner = Assigner(X, n_threads=1)
    for step in (0, 0.01, 0.1, 1.0, 0.001):
        centers = centers + step * rng.normal(size=(k, d)) * (rng.rand(k, 1) < 0.5)
        labels = assigner.assign(centers)
        sq = ((X.astype(np.float64)[:, None] - centers) ** 2).sum(axis=2)
        np.testing.assert_array_equal(labels, sq.argmin(axis=1))
        np.testing.assert_allclose(assigner.sq_distances(), sq.min(axis=1), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_weights_equal_repeated_rows(seed):
    rng = np.random.RandomState(seed)
    X, times = rng.normal(size=(200, 4)), rng.randint(1, 4, 200)
    weighted = run(X, X[:7], sample_weight=times.astype(float))
    repeated = run(np.repeat(X, times, axis=0), X[:7])
    np.testing.assert_array_equal(np.repeat(weighted.labels, times), repeated.labels)
    np.testing.assert_allclose(weighted.centers, repeated.centers, rtol=1e-12)
    assert weighted.inertia == pytest.approx(repeated.inertia)
    assert weighted.n_iter == repeated.n_iter


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("tol, max_iter", [(0.0, 300), (1e-3, 300), (0.0, 4), (0.0, 1)])
def test_iterates_and_stops_as_scikit_learn(dtype, tol, max_iter):
    X = np.random.RandomState(0).rand(2_000, 6).astype(dtype)
    result = run(X, X[:20], max_iter=max_iter, tol=tol)
    spread = np.mean(np.var(X.astype(np.float64), axis=0))
    peer = KMeans(20, init=X[:20], n_init=1, max_iter=max_iter, tol=tol / spread)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about not having converged
        peer.fit(X)
    assert result.n_iter == peer.n_iter_
    np.testing.assert_array_equal(result.labels, peer.labels_)
    np.testing.assert_allclose(result.centers, peer.cluster_centers_, rtol=2e-5)
    assert result.centers.dtype == dtype


@pytest.mark.parametrize("offset", [0, 50])
def test_single_precision_rows_take_the_path_of_double_precision(offset):
    X = (np.random.RandomState(3).rand(20_000, 7) + offset).astype(np.float32)
    single, double = run(X, X[:30], max_iter=40), run(X.astype(np.float64), X[:30], max_iter=40)
    assert single.n_iter == double.n_iter
    assert np.mean(single.labels != double.labels) < 1e-3  # only the final rounding of the centres
    np.testing.assert_allclose(single.centers, double.centers, rtol=1e-6)
    assert single.inertia == pytest.approx(double.inertia, rel=1e-6)


def test_labels_belong_to_the_final_centres_when_stopped_early():
    X = np.random.RandomState(1).rand(3_000, 3)
    result = run(X, X[:30], max_iter=2)
    assert not result.converged
    np.testing.assert_array_equal(result.labels, ((X[:, None] - result.centers) ** 2).sum(axis=2).argmin(axis=1))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_number_of_threads_changes_no_bit(dtype):
    X = np.random.RandomState(2).rand(30_000, 5).astype(dtype)
    one, two, five = (run(X, X[:40], n_threads=t, max_iter=30) for t in (1, 2, 5))
    for other in (two, five):
        np.testing.assert_array_equal(one.labels, other.labels)
        np.testing.assert_array_equal(one.centers, other.centers)
        assert one.inertia == other.inertia


def test_final_centres_are_fresh_means_after_many_incremental_updates():
    X = np.random.RandomState(3).rand(20_000, 2)
    result = run(X, X[:50], max_iter=200)
    fresh = Statistics.of(X, result.labels, np.zeros(len(X)), 50).centers(result.centers)
    assert result.n_iter > 50
    if result.converged:
        np.testing.assert_allclose(result.centers, fresh, rtol=1e-13)


def test_spherical_centres_stay_on_the_sphere_and_labels_have_the_largest_dot_product():
    rng = np.random.RandomState(4)
    X = rng.normal(size=(2_000, 10))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    result = run(X, X[:12], spherical=True)
    np.testing.assert_allclose(np.linalg.norm(result.centers, axis=1), 1.0)
    np.testing.assert_array_equal(result.labels, (X @ result.centers.T).argmax(axis=1))
    sums = Statistics.of(X, result.labels, np.zeros(len(X)), 12).sums
    np.testing.assert_allclose(result.centers, sums / np.linalg.norm(sums, axis=1, keepdims=True))


def test_rows_far_from_the_origin_are_told_apart_in_single_precision():
    rng = np.random.RandomState(5)
    X = (rng.rand(3_000, 4) + 1_000).astype(np.float32)
    result = run(X, X[:8], max_iter=20)
    sq = ((X.astype(np.float64)[:, None] - result.centers.astype(np.float64)) ** 2).sum(axis=2)
    np.testing.assert_array_equal(result.labels, sq.argmin(axis=1))


def test_most_scores_are_skipped_on_clustered_data():
    rng = np.random.RandomState(6)
    X = rng.normal(size=(20_000, 8)) + 20 * rng.normal(size=(30, 8))[rng.randint(0, 30, 20_000)]
    assigner = Assigner(X)
    centers = X[:30]
    for _ in range(30):
        assigner.assign(centers)
        centers = assigner.means()
    assert assigner.work["scores"] < 0.15 * assigner.work["plain"]


def test_progress_is_reported_and_a_true_answer_stops():
    X = np.random.RandomState(7).rand(1_000, 3)
    seen = []
    result = run(X, X[:10], on_iteration=lambda it: seen.append(it.number) or it.number == 3)
    assert seen == [1, 2, 3]
    assert result.n_iter == 3


@pytest.mark.parametrize("k, lanes, most", [(1, 16, 3), (16, 16, 3), (17, 16, 9), (100, 16, 40), (500, 8, 5)])
def test_every_centre_has_one_lane_and_one_group(k, lanes, most):
    grouping = Grouping.of(np.random.RandomState(8).rand(k, 3), lanes, most)
    used = grouping.tile_index[grouping.tile_index >= 0]
    assert sorted(used) == list(range(k))
    assert grouping.n_groups <= most
    for g in range(grouping.n_groups):
        tiles = grouping.tile_index[grouping.group_begin[g] : grouping.group_begin[g + 1]]
        assert set(grouping.group_of[tiles[tiles >= 0]]) == {g}


def test_two_fits_at_once_in_one_process_agree_with_one_alone():
    X = np.random.RandomState(9).rand(40_000, 4).astype(np.float32)
    alone = run(X, X[:25], max_iter=20)
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda _: run(X, X[:25], max_iter=20), range(4)))
    for result in together:
        np.testing.assert_array_equal(result.labels, alone.labels)
        np.testing.assert_array_equal(result.centers, alone.centers)


CHILD = textwrap.dedent(
    """
    import numpy as np
    from coterie.kmeans.lazy import run
    X = np.random.RandomState(0).rand(5_000, 3).astype(np.float32)
    print(run(X, X[:10], max_iter=10).inertia)
    """
)


def test_two_processes_at_once_agree():
    children = [subprocess.Popen([sys.executable, "-c", CHILD], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    answers = [child.communicate(timeout=120)[0] for child in children]
    assert all(child.returncode == 0 for child in children)
    assert answers[0] == answers[1] != ""


def test_memory_above_the_data_stays_within_its_limit():
    for n, d, k in [(20_000, 2, 10), (20_000, 4, 50), (20_000, 50, 300)]:
        X = np.random.RandomState(0).rand(n, d).astype(np.float32)
        assigner = Assigner(X)
        assigner.assign(X[:k])
        kept = assigner.labels.nbytes + assigner.bounds.upper.nbytes + assigner.bounds.lower.nbytes
        assert kept <= n * max(20, d * 4)
