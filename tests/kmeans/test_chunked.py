import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.exceptions import ConvergenceWarning

import coterie
from coterie import starts
from coterie.distributed import fitting
from coterie.distributed.chunks import Chunks
from coterie.estimators import KMeans
from coterie.kmeans import block_statistics, lazy
from coterie.kmeans.algorithm import Algorithm


@pytest.fixture
def rows():
    rng = np.random.RandomState(0)
    return (rng.normal(size=(9_000, 5)) + 6 * rng.normal(size=(8, 5))[rng.randint(0, 8, 9_000)]).astype(np.float32)


def as_parquet(rows, path):
    table = pa.table({f"c{j}": rows[:, j] for j in range(rows.shape[1])})
    pq.write_table(table, path, row_group_size=1_000)
    return path


def as_npy(rows, path):
    np.save(path, rows)
    return path


def streamed_run(chunks, start, max_iter=300, tol=0.0):
    passes = block_statistics.ChunkPasses(chunks)
    known = fitting.look(passes, len(start))
    return fitting.run(passes, iter([start]), Algorithm(), known, parameters={}, max_iter=max_iter, tol=tol)


@pytest.mark.parametrize("kind", ["parquet", "npy", "list", "function"])
def test_centres_over_chunks_are_those_of_the_in_memory_run(kind, rows, tmp_path, monkeypatch):
    monkeypatch.setattr("coterie.distributed.chunks.CHUNK_BYTES", 20_000)
    pieces = np.array_split(rows, 7)
    source = {
        "parquet": lambda: as_parquet(rows, tmp_path / "rows.parquet"),
        "npy": lambda: as_npy(rows, tmp_path / "rows.npy"),
        "list": lambda: pieces,
        "function": lambda: lambda: iter(pieces),
    }[kind]()
    chunks = Chunks(source)
    streamed = streamed_run(chunks, rows[:10], max_iter=100)
    whole = lazy.run(rows, rows[:10], max_iter=100)
    np.testing.assert_allclose(streamed.centers, whole.centers, rtol=1e-6)
    assert streamed.n_iter == whole.n_iter
    assert streamed.inertia == pytest.approx(whole.inertia, rel=1e-6)


def test_double_precision_centres_agree_to_rounding_and_tol_stops_both_alike(rows):
    X = rows.astype(np.float64)
    streamed = streamed_run(Chunks(np.array_split(X, 5)), X[:12], tol=1e-4)
    whole = lazy.run(X, X[:12], tol=1e-4)
    np.testing.assert_allclose(streamed.centers, whole.centers, rtol=1e-12)
    assert streamed.n_iter == whole.n_iter


def test_empty_clusters_are_filled_as_in_memory_with_copies_of_a_row_in_different_chunks(rows):
    X = np.concatenate([rows.astype(np.float64), np.full((3, 5), 60.0), -np.full((2, 5), 70.0)])
    X = X[np.random.RandomState(1).permutation(len(X))]
    start = np.concatenate([X[:3], np.full((3, 5), 1e4)])  # three centres that nobody is near
    streamed = streamed_run(Chunks(np.array_split(X, 9)), start, max_iter=5)
    whole = lazy.run(X, start, max_iter=5)
    np.testing.assert_allclose(streamed.centers, whole.centers, rtol=1e-12)


def test_a_start_from_a_sample_that_holds_everything_is_the_start_of_the_whole(rows):
    X = np.concatenate([rows, rows[:500]])
    known = fitting.look(block_statistics.ChunkPasses(Chunks(np.array_split(X, 4))), 6)
    assert known.largest == np.abs(X).max()
    assert known.mean_variance == pytest.approx(X.astype(np.float64).var(axis=0).mean(), rel=1e-12)
    assert known.rows == len(X)
    assert known.sample.is_complete
    assert known.sample.weight.sum() == len(X)
    from_sample = starts.choose(known.sample.rows, 6, "k-means++", np.random.RandomState(0), known.sample.weight)
    np.testing.assert_array_equal(from_sample, starts.choose(X, 6, "k-means++", np.random.RandomState(0)))


@pytest.mark.parametrize("times", [1, 5])
def test_a_sample_is_bounded_and_does_not_depend_on_the_chunks(times, rows, monkeypatch):
    monkeypatch.setattr(fitting, "SAMPLE", 300)
    rows = np.repeat(rows[:4_000], times, axis=0)
    weights = np.random.default_rng(0).integers(1, 4, len(rows)).astype(float)
    one = fitting.look(block_statistics.ChunkPasses(np.array_split(rows, 3), weights), 2).sample
    other = fitting.look(block_statistics.ChunkPasses(np.array_split(rows[::-1], 8), weights[::-1]), 2).sample
    assert len(one.rows) == 300
    np.testing.assert_array_equal(one.rows, other.rows)
    np.testing.assert_array_equal(one.weight, other.weight)
    drawn = (rows[:, None, 0] == one.rows[:, 0]).T  # by brute force
    np.testing.assert_array_equal(drawn @ weights, one.weight)


def test_starts_from_a_part_of_the_rows_find_all_blobs(monkeypatch):
    monkeypatch.setattr(fitting, "SAMPLE", 600)
    rng = np.random.default_rng(0)
    centers = rng.uniform(-10, 10, size=(12, 8))
    X = centers[rng.integers(12, size=6_000)] + rng.normal(size=(6_000, 8))
    best = KMeans(12, n_init=20, random_state=0).fit(X).inertia_
    found = [KMeans(12, random_state=seed).fit(Chunks(np.array_split(X, 3))).inertia_ for seed in range(20)]
    assert np.mean(np.array(found) < 1.001 * best) >= 0.95


def test_incremental_updates_keep_running_means(rows):
    X = rows.astype(np.float64)
    centers, model = X[:4], KMeans(4, init=X[:4])
    sums, counts = np.zeros((4, 5)), np.zeros(4)
    for block in np.array_split(X, 6):
        labels = ((block[:, None] - centers) ** 2).sum(2).argmin(1)
        np.add.at(sums, labels, block)
        counts += np.bincount(labels, minlength=4)
        centers = model.partial_fit(block).cluster_centers_
        np.testing.assert_array_equal(model.labels_, labels)
        np.testing.assert_allclose(centers, sums / counts[:, None], rtol=1e-12)


@pytest.mark.parametrize(
    "content, message",
    [
        ({"a": [1.0, np.nan]}, "Row 1, column 0 is nan"),
        ({"a": [1.0, 2.0], "b": ["x", "y"]}, "not numbers: 'b'"),
    ],
)
def test_wrong_files_say_what_to_do(content, message, tmp_path):
    pq.write_table(pa.table(content), tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match=message):
        list(Chunks(tmp_path / "rows.parquet"))


def test_missing_files_columns_and_kinds_are_named(rows, tmp_path):
    path = as_parquet(rows, tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match=r"no column 'z'\. Its columns are c0, c1"):
        Chunks(path, columns=["z"])
    with pytest.raises(FileNotFoundError, match="There is no file"):
        Chunks(tmp_path / "nothing.npy")
    (tmp_path / "rows.xyz").write_text("")
    with pytest.raises(ValueError, match=r"give a \.parquet or \.npy file"):
        Chunks(tmp_path / "rows.xyz")
    assert next(iter(Chunks(path, columns=["c3", "c1"]))).shape[1] == 2


def test_kmeans_fits_a_file_as_it_fits_the_array(rows, tmp_path, capsys):
    path = as_parquet(rows, tmp_path / "rows.parquet")
    settings = {"n_clusters": 8, "random_state": 3, "tol": 1e-4}
    from_file, from_array = KMeans(**settings, verbose=1).fit(path), KMeans(**settings).fit(rows)
    np.testing.assert_allclose(from_file.cluster_centers_, from_array.cluster_centers_, rtol=1e-6)
    np.testing.assert_array_equal(from_file.labels_, from_array.labels_)
    assert from_file.n_iter_ == from_array.n_iter_
    assert from_file.n_features_in_ == 5
    np.testing.assert_array_equal(from_file.predict(path), from_file.labels_)


def test_kmeans_refuses_what_a_file_cannot_have(rows, tmp_path):
    path = as_npy(rows, tmp_path / "rows.npy")
    with pytest.raises(ValueError, match="no sample_weight"):
        KMeans(3).fit(path, sample_weight=np.ones(len(rows)))
    with pytest.raises(ValueError, match="engine='literal': use engine='auto'"):
        KMeans(3, engine="literal").fit(path)
    with pytest.raises(ValueError, match="n_samples=9000 should be >= n_clusters=10000"):
        KMeans(10_000).fit(path)


def test_partial_fit_keeps_running_means_and_weights_count_as_copies(rows):
    blocks = np.array_split(rows.astype(np.float64), 5)
    plain, weighted = KMeans(4, random_state=0), KMeans(4, random_state=0)
    for block in blocks:
        plain.partial_fit(np.repeat(block, 2, axis=0))
        weighted.partial_fit(block, sample_weight=np.full(len(block), 2.0))
    np.testing.assert_allclose(plain.cluster_centers_, weighted.cluster_centers_, rtol=1e-10)
    np.testing.assert_allclose(plain.counts_.sum(), 2 * len(rows))
    np.testing.assert_allclose(plain.cluster_centers_, plain.sums_ / plain.counts_[:, None])
    assert plain.n_iter_ == 5
    np.testing.assert_array_equal(plain.fit(rows).counts_, np.bincount(plain.labels_))


def test_fewer_distinct_rows_than_clusters_in_a_file_give_the_labels_of_memory(tmp_path):
    """An IndexError came from the search for far rows, of which there are none."""
    X = np.array([[0.0, 1.0], [0.0, 1.0], [1.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
    np.save(tmp_path / "a.npy", X)
    for rows in (X, str(tmp_path / "a.npy")):
        with pytest.warns(ConvergenceWarning, match="2, is less than n_clusters=3"):
            found = coterie.KMeans(3, random_state=0).fit(rows)
        assert found.n_clusters_ == 2
        assert found.labels_.tolist() == [1, 1, 0, 0, 0]
