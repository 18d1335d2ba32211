"""The members of the family choose the same run and give the same labels wherever their rows are."""

import dask
import dask.array as da
import numpy as np
import pytest
from sklearn.base import clone

from coterie import RobustKMeans
from coterie.distributed.chunks import Chunks

K = 4


@pytest.fixture(autouse=True, scope="module")
def _in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def rows(seed=0):
    rng = np.random.default_rng(seed)
    X = np.repeat(5.0 * rng.normal(size=(5, 2)), 40, axis=0) + rng.normal(size=(200, 2))
    X[::17] *= 20.0  # outliers, which decide about plain inertia
    return X


def fits(member, X):
    yield clone(member).fit(X)
    yield clone(member).fit(Chunks(np.array_split(X, 3)))
    yield clone(member).fit(da.from_array(X, chunks=(61, 2)))


def drawn_rows(X, n_clusters, random_state):
    """A start that is the same for all sources."""
    return rows()[random_state.choice(200, n_clusters, replace=False)]


@pytest.mark.parametrize("n_init", [1, 5])
@pytest.mark.parametrize("seed", range(4))
def test_robust_kmeans_chooses_the_same_run_everywhere(n_init, seed):
    member = RobustKMeans(K, init=drawn_rows, n_init=n_init, random_state=seed)
    here, *others = fits(member, rows())
    for there in others:
        np.testing.assert_array_equal(np.asarray(there.labels_), here.labels_)
        np.testing.assert_allclose(there.cluster_centers_, here.cluster_centers_, rtol=1e-9)
        assert there.n_iter_ == here.n_iter_


def test_the_runs_of_robust_kmeans_are_not_compared_by_their_outliers(monkeypatch):
    from coterie.estimators.sources import Source

    members = [RobustKMeans(K, init=drawn_rows, n_init=5, random_state=seed) for seed in range(4)]
    kept = [member.fit(rows()).inertia_ for member in members]
    monkeypatch.setattr(Source, "criterion", lambda self, result: result.inertia)
    assert any(member.fit(rows()).inertia_ < inertia for member, inertia in zip(members, kept))
