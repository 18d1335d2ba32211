"""A new row of the family works everywhere without further code."""

import dask.array as da
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import coterie
from coterie import AttentionClustering
from coterie.distributed.chunks import Chunks
from coterie.kmeans import family


@pytest.fixture(params=family.FORMS)
def new_row(request, monkeypatch):
    """Points share themselves among the nearest centres by sparsemax: a row that the paper does not have."""
    variant = family.Variant("sparse-soft", "sparsemax", "linear", "labels", 0, "none", gaussian_gamma=True)
    row = family.Row(family.FORMS[request.param], variant)
    monkeypatch.setitem(family.TABLE, row.name, row)
    return row.name


START = 5.0 * np.eye(3) + 0.5


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    return rng.normal(size=(300, 3)) + 5 * np.eye(3)[rng.integers(3, size=300)]


def plain(X, centers, gamma, max_iter):
    """Sparse soft k-means in a few lines of numpy."""
    for _ in range(max_iter):
        z = -gamma * ((X[:, None] - centers) ** 2).sum(2)
        ranked = -np.sort(-z, axis=1)
        total, count = np.cumsum(ranked, axis=1), np.arange(1, len(centers) + 1)
        size = (1 + count * ranked > total).sum(axis=1)
        tau = (total[np.arange(len(X)), size - 1] - 1) / size
        shares = np.maximum(z - tau[:, None], 0)
        centers = shares.T @ X / shares.sum(axis=0)[:, None]
    return centers


def test_it_runs_its_algorithm_in_memory_over_chunks_on_dask_and_in_the_report(new_row, rows, tmp_path):
    gamma = 20.0 if "spherical" in new_row else 0.3
    settings = {"n_clusters": 3, "init": START, "settings": {"gamma": gamma}, "max_iter": 400}
    fitted = AttentionClustering(new_row, **settings).fit(rows)
    if new_row == "sparse-soft":
        assert_allclose(fitted.cluster_centers_, plain(rows, START, 0.3, fitted.n_iter_), rtol=1e-9)
    again = {
        "literal": AttentionClustering(new_row, engine="literal", **settings).fit(rows),
        "chunks": AttentionClustering(new_row, **settings).fit(Chunks(np.array_split(rows, 4))),
        "dask": AttentionClustering(new_row, **settings).fit(da.from_array(rows, chunks=(100, 3))),
    }
    for other in again.values():
        assert_allclose(other.cluster_centers_, fitted.cluster_centers_, rtol=1e-7, atol=1e-9)
        assert_array_equal(np.asarray(other.labels_), fitted.labels_)
        assert_array_equal(other.predict(rows), fitted.labels_)
    coterie.report(fitted, rows, tmp_path / "report.html")
    assert "as a transformer of" in (tmp_path / "report.html").read_text()
