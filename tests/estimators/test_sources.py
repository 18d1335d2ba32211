"""The members of the family choose the same run and give the same labels wherever their rows are."""

import dask
import dask.array as da
import numpy as np
import pytest
from sklearn.base import clone

from coterie import AttentionClustering, KMeans, RobustKMeans, SoftKMeans, SphericalKMeans, TrimmedKMeans
from coterie.distributed.chunks import Chunks
from coterie.kmeans.family import TABLE

K = 4


@pytest.fixture(autouse=True, scope="module")
def _in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def rows(seed=0):
    rng = np.random.default_rng(seed)
    X = np.repeat(5.0 * rng.normal(size=(5, 2)), 20, axis=0) + rng.normal(size=(100, 2))
    X[::17] *= 20.0  # outliers, which decide about plain inertia
    return X


def drawn_rows(X, n_clusters, random_state):
    """A start that is the same for all sources."""
    return rows()[random_state.choice(100, n_clusters, replace=False)]


MEMBERS = {
    "KMeans": KMeans(K),
    "KMeans to the end": KMeans(K, tol=0),
    "KMeans, fused": KMeans(K, engine="fused"),
    "SoftKMeans": SoftKMeans(K),
    "SoftKMeans with mixing weights": SoftKMeans(K, mixing_weights=True, gamma=0.5),
    "SphericalKMeans": SphericalKMeans(K),
    "TrimmedKMeans": TrimmedKMeans(K, outliers=0.1),
    "TrimmedKMeans per cluster": TrimmedKMeans(K, outliers=0.1, per_cluster=True),
    "RobustKMeans": RobustKMeans(K),
    "RobustKMeans, sparsemax": RobustKMeans(K, weighting="sparsemax"),
    "RobustKMeans, top-k": RobustKMeans(K, weighting="top-k", top=20),
}
# The other forms of the table. Medoids draw their noise block by block, so that their runs are others.
FORMS = {
    name: AttentionClustering(name, K, settings={"keep": 0.9, "top": 20})
    for name in TABLE
    if "/" in name and name.split("/")[0] not in ("medoids", "balanced", "balanced-soft")
}
CASES = [(name, n_init, weighted) for name in MEMBERS for n_init in (1, 5) for weighted in (False, True)]
CASES += [(name, 5, True) for name in FORMS]


@pytest.mark.parametrize("name, n_init, weighted", CASES)
def test_the_same_run_is_chosen_everywhere(name, n_init, weighted):
    """In memory, in chunks, which have no weights but can repeat rows, and on Dask."""
    X = rows()
    times = np.random.default_rng(1).integers(0, 4, len(X)) if weighted else np.ones(len(X), int)
    weight = times.astype(float) if weighted else None
    here, chunks, blocks = (
        clone({**MEMBERS, **FORMS}[name]).set_params(init=drawn_rows, n_init=n_init, random_state=3) for _ in range(3)
    )
    here.fit(X, sample_weight=weight)
    chunks.fit(Chunks(np.array_split(np.repeat(X, times, axis=0), 2)))
    blocks.fit(da.from_array(X, chunks=(70, 2)), sample_weight=weight)
    np.testing.assert_array_equal(chunks.labels_, np.repeat(here.labels_, times))
    np.testing.assert_array_equal(blocks.labels_.compute(), here.labels_)
    for there in (chunks, blocks):
        np.testing.assert_allclose(there.cluster_centers_, here.cluster_centers_, rtol=1e-9, atol=1e-9)
        assert there.inertia_ == pytest.approx(here.inertia_)
        assert (there.n_iter_, there.n_clusters_) == (here.n_iter_, here.n_clusters_)


def test_the_runs_of_robust_kmeans_are_not_compared_by_their_outliers(monkeypatch):
    from coterie.estimators.sources import Source

    members = [RobustKMeans(K, init=drawn_rows, n_init=5, random_state=seed) for seed in range(4)]
    kept = [member.fit(rows()).inertia_ for member in members]
    monkeypatch.setattr(Source, "criterion", lambda self, result: result.inertia)
    assert any(member.fit(rows()).inertia_ < inertia for member, inertia in zip(members, kept))


def everywhere(member, X):
    """Fits of the same rows in memory, in chunks and on Dask."""
    yield clone(member).fit(X)
    yield clone(member).fit(Chunks(np.array_split(X, 2)))
    yield clone(member).fit(da.from_array(X, chunks=(len(X) // 2, X.shape[1])))


@pytest.mark.parametrize("init", ["k-means++", "random"])
@pytest.mark.parametrize("kind", [KMeans, SoftKMeans, SphericalKMeans, TrimmedKMeans, RobustKMeans])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_fewer_distinct_rows_than_clusters_are_all_centres_everywhere(kind, init):
    X = np.repeat([[0.0, 1.0], [1.0, 1.0], [2.0, 0.5]], 10, axis=0)
    for model in everywhere(kind(5, init=init, n_init=1, random_state=0), X):
        assert (len(model.cluster_centers_), model.n_clusters_) == (5, 3)


@pytest.mark.parametrize("kind", [KMeans, SoftKMeans, RobustKMeans, TrimmedKMeans])
def test_small_numbers_are_scaled_everywhere(kind):
    """Inertia was 0 at 1e-25 in single precision on chunks and on Dask."""
    X = np.ldexp(rows(), -90).astype(np.float32)
    member = kind(K, init=lambda X, n_clusters, random_state: np.ldexp(rows()[:n_clusters], -90), random_state=0)
    here, *others = everywhere(member, X)
    assert here.inertia_ > 0
    for there in others:
        assert there.inertia_ == pytest.approx(here.inertia_)
        np.testing.assert_array_equal(np.asarray(there.labels_), here.labels_)


@pytest.mark.parametrize("size, words", [(1e-170, "underflow"), (1e160, "overflow")])
def test_sizes_whose_squares_are_lost_are_refused_everywhere(size, words):
    """On Dask, data of size 1e-170 ended in an IndexError or in one cluster."""
    X = rows() * size
    for data in (X, Chunks(np.array_split(X, 2)), da.from_array(X, chunks=(60, 2))):
        with pytest.raises(ValueError, match=words):
            KMeans(K).fit(data)


@pytest.mark.parametrize("order", ["<", ">"])
def test_single_precision_is_kept_in_any_order_of_the_bytes(order):
    for model in everywhere(KMeans(K, random_state=0), rows().astype(f"{order}f4")):
        assert model.cluster_centers_.dtype == np.float32
        assert model.cluster_centers_.dtype.isnative


def test_half_precision_is_refused_everywhere():
    X = rows().astype(np.float16)
    for data in (X, Chunks(X), da.from_array(X, chunks=(60, 2))):
        with pytest.raises(ValueError, match="float16, which overflows at 65,504"):
            KMeans(K).fit(data)


@pytest.mark.parametrize("weighted", [False, True])
def test_partial_fit_after_fit_adds_to_the_rows_of_the_fit_everywhere(weighted):
    """It forgot them, so that one row moved a centre entirely."""
    X = rows()
    weight = np.random.default_rng(0).integers(1, 4, len(X)).astype(float) if weighted else None
    more = np.array([[7.0, -3.0]])
    models = [KMeans(K, random_state=0).fit(X, sample_weight=weight)] if weighted else everywhere(KMeans(K), X)
    for model in models:
        before, counts = model.cluster_centers_.copy(), model.counts_.copy()
        assert counts.sum() == (weight.sum() if weighted else len(X))
        model.partial_fit(more)
        own = model.labels_[0]
        expected = (counts[own] * before[own] + more[0]) / (counts[own] + 1)
        np.testing.assert_allclose(model.cluster_centers_[own], expected)
        assert model.counts_.sum() == counts.sum() + 1
