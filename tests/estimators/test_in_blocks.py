"""Every estimator on every kind of source: each cell equals the fit in memory, or raises one sentence."""

import sqlite3
from contextlib import closing

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import coterie
from coterie.catalogue import CATALOGUE
from coterie.distributed import is_dask
from coterie.distributed.chunks import Chunks

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
duckdb = pytest.importorskip("duckdb")

PARAMETERS = {
    "ZeroShotClusterer": {"max_context": 40},
    "FlowMixture": {"max_context": 40, "covariance_type": "full"},
    "VAEMixture": {"n_clusters": 2, "max_iter": 2, "hidden_size": 4},
    "InContextClusterer": {"n_clusters": 3, "max_context": 40, "n_init": 2},
}
METHODS = ("predict", "predict_proba", "predict_certainty", "transform", "score_samples", "score", "bic")
NAMED = ("DuckDB", "Arrow", "CSV", "Parquet", "folder", "pattern", "database", "Dask DataFrame")
UNNAMED = ("NPY", "chunks", "Dask array")


def blobs(n: int = 90) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    centers = np.array([[0.2, 0.2, 0.8], [0.8, 0.3, 0.2], [0.3, 0.9, 0.4]])
    rows = centers[rng.integers(3, size=n)] + 0.04 * rng.normal(size=(n, 3))
    return pd.DataFrame(rows.clip(0, 1), columns=["a", "b", "c"])


def places_of(table: pd.DataFrame, folder) -> dict:
    """The same rows in every kind of source."""
    n = len(table)
    rows = table.to_numpy()
    table.to_csv(folder / "t.csv", index=False)
    table.to_parquet(folder / "t.parquet", row_group_size=n // 3)
    (folder / "parts").mkdir()
    for number, (first, last) in enumerate([(0, n // 3), (n // 3, n // 2), (n // 2, n)]):
        table.iloc[first:last].to_parquet(folder / "parts" / f"{number}.parquet", index=False)
    with closing(sqlite3.connect(folder / "t.sqlite")) as connection:
        table.to_sql("t", connection, index=False)
    found = {
        "DuckDB": duckdb.sql(f"SELECT * FROM '{folder / 't.parquet'}'"),
        "Arrow": pa.Table.from_pandas(table),
        "CSV": folder / "t.csv",
        "Parquet": folder / "t.parquet",
        "folder": folder / "parts",
        "pattern": str(folder / "parts" / "*.parquet"),
        "database": folder / "t.sqlite",
        "Dask DataFrame": dd.from_pandas(table, npartitions=3),
    }
    if rows.dtype != object:
        np.save(folder / "t.npy", rows)
        found["NPY"] = folder / "t.npy"
        found["chunks"] = Chunks([rows[: n // 3], rows[n // 3 : n - 7], rows[n - 7 :]])
        found["Dask array"] = da.from_array(rows, chunks=(n // 2 - 5, rows.shape[1]))
    return found


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    return places_of(blobs(), tmp_path_factory.mktemp("sources"))


@pytest.fixture(scope="module")
def in_memory():
    """The fits in memory: of a DataFrame for sources with names of columns, of an array for others."""
    fits: dict = {}

    def fitted(name: str, source: str):
        rows = blobs() if source in NAMED else blobs().to_numpy()
        key = name, type(rows)
        if key not in fits:
            fits[key] = made(name).fit(rows)
        return fits[key], rows

    return fitted


def made(name: str):
    return getattr(coterie, name)(**PARAMETERS.get(name, {"n_clusters": 3}), random_state=0)


@pytest.mark.usefixtures("brief_training")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("source", [*NAMED, *UNNAMED])
@pytest.mark.parametrize("name", CATALOGUE)
def test_every_estimator_does_with_every_source_what_it_does_in_memory(name, source, places, in_memory):
    expected, rows = in_memory(name, source)
    given = places[source]
    fitted = made(name).fit(given)
    assert is_dask(fitted.labels_) == is_dask(given)
    np.testing.assert_array_equal(np.asarray(fitted.labels_), expected.labels_)
    np.testing.assert_allclose(fitted.cluster_centers_, expected.cluster_centers_, rtol=1e-6)
    assert list(getattr(fitted, "feature_names_in_", ())) == list(getattr(expected, "feature_names_in_", ()))
    for method in METHODS:
        if not hasattr(expected, method):
            continue
        answer = getattr(fitted, method)(given)
        assert is_dask(answer) == (is_dask(given) and method not in ("score", "bic"))
        wanted = getattr(expected, method)(rows)
        assert np.asarray(answer).dtype == np.asarray(wanted).dtype
        np.testing.assert_allclose(np.asarray(answer), wanted, rtol=1e-6, atol=1e-9)


@pytest.mark.usefixtures("brief_training")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("source", ["folder", "Dask DataFrame"])
@pytest.mark.parametrize("name", CATALOGUE)
def test_columns_in_another_order_are_refused_as_in_memory(name, source, in_memory, tmp_path):
    expected, rows = in_memory(name, source)
    other = places_of(rows[["c", "b", "a"]], tmp_path)[source]
    with pytest.raises(ValueError, match="feature names should match"):
        expected.predict(other)


WITH_PLACES = {
    "ZeroShotClusterer": {"y": np.r_[0, np.full(89, -1)]},
    "KMeans": {"must_link": [[0, 1]]},
    "KMedoids": {"sample_weight": np.ones(90)},
    "FlowMixture": {"sample_weight": np.ones(90)},
}


@pytest.mark.parametrize("source", ["Parquet", "Dask array"])
@pytest.mark.parametrize("name", WITH_PLACES)
def test_what_names_rows_by_their_place_is_refused_in_one_sentence(name, source, places):
    argument = next(iter(WITH_PLACES[name]))
    with pytest.raises(ValueError, match=f"{name} takes {argument} for rows in memory only: pass an array"):
        made(name).fit(places[source], **WITH_PLACES[name])


def mixed(n: int = 240) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    group = rng.integers(3, size=n)
    table = pd.DataFrame({"size": group * 9 + rng.normal(size=n), "weight": 5.0 - group * 7 + rng.normal(size=n)})
    table["colour"] = np.array(["red", "green", "blue"])[np.where(rng.random(n) < 0.1, rng.integers(3, size=n), group)]
    table["shop"] = np.array(["Ulm", "Bonn"])[rng.integers(2, size=n)]
    table.loc[rng.choice(n, 20, replace=False), "weight"] = np.nan
    table.loc[rng.choice(n, 20, replace=False), "colour"] = None
    return table


def test_mixed_columns_in_files_and_on_dask_are_read_as_in_memory(tmp_path):
    table = mixed()
    expected = coterie.ZeroShotClusterer(random_state=0).fit(table)
    assert expected.n_clusters_ == 3
    for source in places_of(table, tmp_path).values():
        fitted = coterie.ZeroShotClusterer(random_state=0).fit(source)
        assert fitted.encoding_ == expected.encoding_
        np.testing.assert_array_equal(np.asarray(fitted.labels_), expected.labels_)
        np.testing.assert_allclose(np.asarray(fitted.predict_proba(source)), expected.predict_proba(table), rtol=1e-6)


@pytest.mark.parametrize("name", ["ZeroShotClusterer", "KMedoids"])
def test_a_sample_depends_on_the_seed_and_not_on_blocks(name, monkeypatch):
    from coterie.estimators import kmedoids, zero_shot_clusterer

    for module in (kmedoids, zero_shot_clusterer):
        monkeypatch.setattr(module, "SAMPLE", 60)
    rows = blobs(600).to_numpy()
    fits = [made(name).fit(da.from_array(rows, chunks=(size, 3))) for size in (600, 100, 37)]
    fits.append(made(name).fit(Chunks(np.array_split(rows, 7))))
    for one in fits[1:]:
        np.testing.assert_array_equal(np.asarray(one.labels_), np.asarray(fits[0].labels_))
        np.testing.assert_array_equal(one.cluster_centers_, fits[0].cluster_centers_)
    assert len(np.unique(np.asarray(fits[0].labels_))) >= 3


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical", "tied-spherical"])
def test_em_on_all_rows_is_the_same_in_memory_in_chunks_and_on_dask(kind):
    rng = np.random.default_rng(0)
    rows = 1e3 + np.r_[rng.normal(size=(900, 2)) * [1, 3], rng.normal(size=(600, 2)) + 12]
    model = coterie.FlowMixture(covariance_type=kind, outliers=0.1, max_context=200, random_state=0)
    memory = model.fit(rows)
    found = memory.cluster_centers_, memory.covariances_, memory.weights_, memory.noise_weight_, memory.n_iter_
    for source in (Chunks(np.array_split(rows, 4)), da.from_array(rows, chunks=(333, 2))):
        other = coterie.FlowMixture(covariance_type=kind, outliers=0.1, max_context=200, random_state=0).fit(source)
        same = other.cluster_centers_, other.covariances_, other.weights_, other.noise_weight_, other.n_iter_
        for one, two in zip(found, same):
            np.testing.assert_allclose(one, two, rtol=1e-6)
        np.testing.assert_allclose(other.bic(source), memory.bic(rows), rtol=1e-9)


def test_rows_of_a_file_need_no_memory_of_their_own_in_the_training_of_networks(places):
    from coterie.estimators.in_blocks import rows_in

    rows = rows_in(places["folder"]).mapped(lambda block: 2 * block)
    np.testing.assert_allclose(rows, 2 * blobs().to_numpy(), rtol=1e-6)
    assert rows.base is not None
    assert rows.dtype == np.float32
