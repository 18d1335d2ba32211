"""Bounds on sizes: the plan is the optimal transport, and estimators keep the bounds."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linprog
from scipy.special import softmax

from coterie import AttentionClustering, KMeans, SphericalKMeans, TrimmedKMeans, cluster_table, load
from coterie.distributed.chunks import Chunks
from coterie.kmeans import transport
from coterie.kmeans.transport_attention import Transport
from coterie.selection import choose_k
from coterie.studio.limits import Limits
from coterie.studio.settings import run_settings
from coterie.tabular.make_estimator import SettingError
from tests.test_cli import refuse


def least(cost, low, high):
    """The value of the linear programme."""
    n, k = cost.shape
    rows, columns = np.kron(np.eye(n), np.ones(k)), np.tile(np.eye(k), n)
    found = linprog(cost.ravel(), np.vstack([columns, -columns]), np.r_[high, -low], rows, np.ones(n))
    return found.fun


def problem(seed):
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(8, 40)), int(rng.integers(1, 6))
    cost = rng.random((n, k)) * (1 + 3 * rng.random(k))
    low = rng.integers(0, n // k + 1, size=k)
    return cost, low, np.maximum(low, rng.integers(-(-n // k), n + 1, size=k)), rng


@pytest.mark.parametrize("block", range(5))
def test_plans_are_optimal_and_their_prices_explain_them(block):
    for seed in range(10 * block, 10 * block + 10):
        cost, low, high, rng = problem(seed)
        start = rng.normal(size=cost.shape[1]) if seed % 2 else None
        labels, prices = transport.plan(cost, low, high, start)
        counts = np.bincount(labels, minlength=len(low))
        assert (counts >= low).all()
        assert (counts <= high).all()
        assert_allclose(cost[np.arange(len(cost)), labels].sum(), least(cost, low, high), rtol=1e-9)
        assert_array_equal((cost + prices).argmin(axis=1), labels)
        assert (prices[counts < high] <= 1e-9).all()
        assert (prices[counts > low] >= -1e-9).all()


def test_samples_and_parts_of_the_rows_change_nothing(monkeypatch):
    rng = np.random.default_rng(0)
    cost = rng.random((600, 5)) * [1, 2, 3, 4, 5]

    def labels():
        return transport.Planner("balanced", 600, 5).labels(
            lambda block: cost[block], [slice(0, 256), slice(256, 600)], True
        )

    whole = labels()
    monkeypatch.setattr(transport, "ONE_LEVEL", 20)
    assert_array_equal(labels(), whole)
    monkeypatch.setattr(transport, "MOST_VALUES", 1500)
    parts = labels()
    assert set(np.bincount(parts)) == {120}
    assert cost[np.arange(600), parts].sum() <= 1.001 * cost[np.arange(600), whole].sum()


@pytest.mark.parametrize("seed", range(6))
def test_soft_plans_keep_bounds_and_are_a_softmax_of_scores_less_prices(seed):
    import torch

    cost, _, _, rng = problem(seed)
    n, k = cost.shape
    low, high = int(rng.integers(0, n // k + 1)), int(rng.integers(-(-n // k), n + 1))
    rule = Transport((low, high), gamma=float(rng.choice([0.1, 3.0, 30.0])))
    shares = rule(torch.from_numpy(-cost)).numpy()
    sums = shares.sum(axis=0)
    assert_allclose(shares.sum(axis=1), 1)
    assert (sums >= low - 1e-8 * n).all()
    assert (sums <= high + 1e-8 * n).all()
    assert_allclose(shares, softmax(-rule.gamma * (cost + rule.prices), axis=1), atol=1e-12)
    inside = (sums > low + 1e-6) & (sums < high - 1e-6)
    assert_allclose(rule.prices[inside], 0, atol=1e-9)


@pytest.mark.filterwarnings("ignore:The number of distinct clusters")
def test_fits_keep_their_bounds_in_200_random_cases():
    for seed in range(200):
        rng = np.random.default_rng(seed)
        n, k = int(rng.integers(12, 60)), int(rng.integers(1, 6))
        X = rng.normal(size=(n, 2)) + 3 * rng.integers(0, 2, size=(n, 1))
        if seed % 3 == 0:
            X = X.round()  # equal rows
        low, high = int(rng.integers(0, n // k + 1)), int(rng.integers(-(-n // k), n + 1))
        sizes = "balanced" if seed % 4 == 0 else (low, high)
        kind = [KMeans, SphericalKMeans][seed % 2]
        fitted = kind(k, sizes=sizes, max_iter=8, random_state=seed).fit(X)
        counts = np.bincount(fitted.labels_, minlength=k)
        low, high = (n // k, -(-n // k)) if sizes == "balanced" else sizes
        assert counts.min() >= low, (seed, counts, low, high)
        assert counts.max() <= high, (seed, counts, low, high)


@pytest.fixture
def rows():
    rng = np.random.default_rng(1)
    return rng.normal(size=(90, 2)) + np.repeat([[0, 0], [6, 0], [0, 6]], [60, 20, 10], axis=0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_predict_gives_the_labels_of_the_fit_after_saving_too(rows, tmp_path, dtype):
    X = rows.astype(dtype)
    fitted = KMeans(3, sizes=(25, None), random_state=0).fit(X)
    assert np.bincount(fitted.labels_).min() == 25
    assert_array_equal(fitted.predict(X), fitted.labels_)
    fitted.save(tmp_path / "sized.model")
    again = load(tmp_path / "sized.model")
    assert_array_equal(again.predict(X), fitted.labels_)
    assert tuple(again.sizes) == (25, None)
    assert_allclose(fitted.set_params(n_clusters=3).fit(2.0**120 * rows).predict(2.0**120 * rows), fitted.labels_)
    assert not hasattr(fitted.set_params(sizes=None).fit(X), "prices_")


def test_both_engines_and_the_row_of_the_table_agree(rows):
    options = {"init": rows[:3], "random_state": 0}
    fitted = [
        KMeans(3, sizes="balanced", **options),
        KMeans(3, sizes="balanced", engine="literal", **options),
        AttentionClustering("balanced", 3, **options),
        AttentionClustering("lloyd/dot", 3, settings={"sizes": (30, 30)}, **options),
    ]
    for one in fitted:
        one.fit(rows)
        assert_array_equal(one.labels_, fitted[0].labels_)
        assert_array_equal(one.predict(rows), fitted[0].labels_)


def test_outliers_stay_outside_and_do_not_count(rows):
    X = np.vstack([rows, [[100, 100], [-100, 50]]])
    fitted = TrimmedKMeans(3, outliers=2 / 92, sizes=(28, 32), random_state=0).fit(X)
    assert_array_equal(np.flatnonzero(fitted.outliers_), [90, 91])
    counts = np.bincount(fitted.labels_[:90])
    assert counts.min() >= 28
    assert counts.max() <= 32
    assert_array_equal(fitted.predict(X), fitted.labels_)


def test_soft_and_robust_rows_take_sizes(rows):
    soft = AttentionClustering("balanced-soft", 3, settings={"sizes": (29, 31)}, random_state=0).fit(rows)
    sums = softmax(-soft.gamma_ * soft.transform(rows) ** 2 + np.log(soft.weights_), axis=1).sum(axis=0)
    assert sums.min() >= 29 - 1e-6
    assert sums.max() <= 31 + 1e-6
    robust = AttentionClustering("robust-softmax", 3, settings={"sizes": "balanced"}, random_state=0).fit(rows)
    assert set(np.bincount(robust.labels_)) == {30}


def test_a_centre_leaves_a_group_that_is_smaller_than_a_cluster_may_be():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(315, 2)) + np.repeat([[0, 0], [20, 0], [40, 0], [0, 30]], [100, 100, 100, 15], axis=0)
    fitted = KMeans(3, sizes=(80, None), init=X[[0, 150, 310]]).fit(X)
    best = KMeans(3, sizes=(80, None), init=X[[0, 150, 250]]).fit(X)
    assert fitted.inertia_ <= best.inertia_ * (1 + 1e-9)


@pytest.mark.parametrize(
    "sizes, said",
    [
        ((50, None), "90"),
        ((None, 10), "270"),
        ((20, 10), "larger than"),
        ((1, 2, 3), "min, max"),
        ((0.5, None), "rows"),
    ],
)
def test_impossible_bounds_are_one_sentence(rows, sizes, said):
    if said == "270":
        said = "hold 30 rows"
    with pytest.raises(ValueError, match=said):
        KMeans(3, sizes=sizes).fit(rows)


def test_impossible_bounds_are_told_on_every_front_before_anything_is_fitted(rows, tmp_path, monkeypatch):
    tried = []
    with pytest.raises(ValueError, match="5 clusters of at least 20 rows need 100 rows"):
        choose_k(KMeans(sizes=(20, None)), rows, range(5, 9), on_candidate=tried.append)
    assert tried == []
    choose_k(KMeans(sizes=(20, 40), random_state=0), rows, range(2, 9), on_candidate=tried.append)
    assert [one.k for one in tried] == [3, 4]
    monkeypatch.chdir(tmp_path)
    np.savetxt("rows.csv", rows, delimiter=",", header="x,y", comments="")
    assert "hold 30 rows" in refuse("cluster rows.csv -k 3 --sizes ..10")
    assert "raise the largest size to 30 or the number of clusters to 9." in refuse(
        "cluster rows.csv -k 3 --sizes ..10"
    )
    assert "lower the smallest size to 30.\n" in refuse("cluster rows.csv -k 3 --sizes 900..1100")
    assert "smallest size of a cluster, 50, is larger" in refuse("cluster rows.csv -k 2..3 --sizes 50..40")
    assert "Sizes are 50..200" in refuse("cluster rows.csv -k 3 --sizes ten")
    table = [{"name": "x", "kind": "number"}, {"name": "y", "kind": "number"}]
    given = {"columns": ["x", "y"], "algorithm": "trimmed", "sizes": "40..50", "clusters": 3}
    wanted = run_settings(given, table, Limits())
    assert wanted["settings"]["sizes"] == (40, 50)
    with pytest.raises(SettingError, match="need 120 rows, but there are 86"):
        cluster_table("rows.csv", **wanted)
    with pytest.raises(SettingError, match="Sizes are"):
        run_settings({**given, "sizes": "<b>"}, table, Limits())
    found = cluster_table("rows.csv", algorithm="kmeans", settings={"sizes": (25, None)})
    assert [one.k for one in found.run.choice.candidates] == [2, 3]


def test_what_does_not_go_with_sizes_is_refused(rows):
    bounded = KMeans(3, sizes="balanced")
    with pytest.raises(ValueError, match="sample_weight"):
        bounded.fit(rows, sample_weight=np.ones(90))
    with pytest.raises(ValueError, match="must_link"):
        bounded.fit(rows, must_link=[[0, 1]])
    with pytest.raises(ValueError, match="sizes"):
        bounded.fit(Chunks([rows[:50], rows[50:]]))
    with pytest.raises(ValueError, match="sizes"):
        bounded.partial_fit(rows)
