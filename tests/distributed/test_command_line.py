"""``coterie cluster`` on Parquet files in blocks."""

import json
import time

import numpy as np
import pandas as pd
import pytest

import coterie
from coterie.distributed import parquet
from coterie.tabular import out_of_core
from tests.test_cli import call, refuse, succeed

K = 4
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def data(tmp_path, monkeypatch):
    """Three files, one of them empty, each with a column of text that nobody wants."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    rng = np.random.default_rng(0)
    middles = 6 * rng.normal(size=(K, 3))
    for number, n in enumerate([700, 0, 500]):
        rows = middles[rng.integers(0, K, n)] + rng.normal(size=(n, 3))
        frame = pd.DataFrame(rows * [1, 10, 100], columns=["a", "b", "c"]).astype({"a": "float32"})
        frame["name"] = pd.Series(["x"] * n, dtype="string")
        frame.to_parquet(tmp_path / "data" / f"part{number}.parquet", row_group_size=300)
    return tmp_path


@pytest.fixture
def here(monkeypatch):
    """No cluster: Dask in this thread."""
    from contextlib import contextmanager

    import dask

    @contextmanager
    def connected(scheduler, workers):
        with dask.config.set(scheduler="synchronous"):
            yield

    monkeypatch.setattr(out_of_core, "connected", connected)
    monkeypatch.setattr(parquet, "BLOCK_BYTES", 1)


def frame_of(data):
    return pd.concat([pd.read_parquet(data / "data" / f"part{number}.parquet") for number in range(3)])


def test_labels_are_written_in_parts_beside_the_input(data, here):
    result = succeed("cluster data/*.parquet -k 4 -x name --scale --json --save m.model --checkpoint c.st")
    document = json.loads(result.stdout)
    assert document["rows"] == 1200
    assert document["files"]["labels"] == str(data / "data-clusters")
    assert sorted(path.name for path in data.iterdir()) == ["c.st", "data", "data-clusters", "m.model"]
    labels = pd.read_parquet(data / "data-clusters")["cluster"].to_numpy()
    frame = frame_of(data)
    assert len(labels) == len(frame)
    sizes = [cluster["rows"] for cluster in document["clusters"]]
    np.testing.assert_array_equal(np.bincount(labels, minlength=K), sizes)
    from coterie.tabular import TableModel

    np.testing.assert_array_equal(TableModel.load("m.model").predict(frame), labels)
    for name in "abc":
        np.testing.assert_allclose(
            [cluster["center"][name] for cluster in document["clusters"]],
            [frame[name].to_numpy("float64")[labels == label].mean() for label in range(K)],
            rtol=1e-4,
        )


def test_progress_is_a_line_an_iteration_where_there_is_no_terminal(data, here):
    result = succeed("cluster data -k 4 -x name --output labels --max-iter 3")
    lines = result.stderr.splitlines()
    assert "iteration 1 of 3, objective" in lines[0]
    assert "moved" in lines[1]
    assert "left" in lines[1]
    assert (data / "labels").is_dir()


def test_a_run_that_was_stopped_goes_on(data, here):
    whole = json.loads(succeed("cluster data -k 4 -x name --json -o whole").stdout)
    succeed("cluster data -k 4 -x name --json -o part --max-iter 1 --checkpoint c.st")
    again = json.loads(succeed("cluster data -k 4 -x name --json -o rest --checkpoint c.st --resume").stdout)
    assert again["inertia"] == whole["inertia"]
    assert again["iterations"] == whole["iterations"]


@pytest.mark.parametrize("scale", ["", "--scale"])
def test_a_run_does_not_go_on_with_another_table_or_seed(scale, data, here):
    """With --scale, the checkpoint of one table was continued on any other of the same size."""
    run = f"cluster data -k 4 -x name {scale} --checkpoint c.st --max-iter 2 -o"
    succeed(run, "first")
    assert "random_state is 0, here it is 7" in refuse(run, "other --resume --seed 7")
    table = pd.read_parquet("data/part0.parquet")
    table.assign(b=5 * table["b"]).to_parquet("data/part0.parquet", row_group_size=300)
    assert "belongs to another fit: its fingerprint of the rows" in refuse(run, "other --resume")


def test_a_run_without_scaling_does_not_go_on_with_it(data, here):
    succeed("cluster data -k 4 -x name --checkpoint c.st -o first")
    assert "fingerprint of the rows" in refuse("cluster data -k 4 -x name --scale --checkpoint c.st --resume -o other")


def test_what_is_wrong_is_one_line(data, here):
    assert "'name' holds text" in refuse("cluster data/*.parquet -k 4 --no-encode")
    assert "checkpoint is not available" in refuse("cluster data/*.parquet --checkpoint c.st")
    assert "--text is not available" in refuse("cluster data/*.parquet --text name")
    assert "No file matches" in refuse("cluster none/*.parquet -k 4")
    assert "no column 'z'" in refuse("cluster data -k 4 -c z")
    (data / "data-clusters").mkdir()
    assert "already exists" in refuse("cluster data -k 4 -x name")
    frame = frame_of(data)
    frame.assign(d=1.0).to_parquet("data/part3.parquet")
    assert "has a column 'd'" in refuse("cluster data -k 4 -x name -o labels")
    frame.assign(a=frame["a"].astype("float64")).to_parquet("data/part3.parquet")
    assert "'a' is double in" in refuse("cluster data -k 4 -x name -o labels")
    frame["a"] = np.float32(np.nan)
    frame.to_parquet("data/part3.parquet")
    said = succeed("cluster data -k 4 -x name -o labels").stderr  # what is missing needs a table in memory
    assert "Missing values were filled" in " ".join(said.split())


@pytest.mark.parametrize(
    "options, message",
    [
        ("--save data/part0.parquet", "--save data/part0.parquet would overwrite the input"),
        ("--checkpoint data/part2.parquet", "--checkpoint data/part2.parquet would overwrite the input"),
        ("--checkpoint linked.parquet", "would overwrite the input"),
        ("--save m --checkpoint m", "--checkpoint m would overwrite the file of --save"),
        ("--save labels", "--save labels would overwrite the file of --output"),
        ("--save nodir/m", "there is no folder"),
        ("--checkpoint nodir/c", "there is no folder"),
    ],
)
def test_no_output_takes_the_place_of_a_file_that_is_read_or_written(options, message, data, here, monkeypatch):
    """A checkpoint or a model replaced the table, and a missing folder was found out after the fit."""
    (data / "linked.parquet").symlink_to(data / "data" / "part0.parquet")
    before = {path.name: path.read_bytes() for path in (data / "data").iterdir()}
    monkeypatch.setattr(parquet, "read", lambda *_: pytest.fail("rows were read"))
    assert message in refuse("cluster data -k 4 -x name -o labels", options)
    assert {path.name: path.read_bytes() for path in (data / "data").iterdir()} == before


def test_a_scheduler_that_does_not_answer(data, monkeypatch):
    monkeypatch.setattr(out_of_core, "CONNECT_SECONDS", 1)
    began = time.monotonic()
    assert "did not answer within 1 s" in refuse("cluster data -k 4 -x name --scheduler tcp://127.0.0.1:9")
    assert time.monotonic() - began < 8


def test_data_larger_than_memory_are_noticed_by_their_footer(data, monkeypatch):
    file = data / "data" / "part0.parquet"
    assert not out_of_core.Blocks().are_needed(file)
    monkeypatch.setattr(out_of_core, "_memory", lambda: 1000)
    assert out_of_core.Blocks().are_needed(str(file))


@pytest.mark.slow
def test_a_cluster_of_its_own(data):
    assert "4 clusters by kmeans" in succeed("cluster data/*.parquet -k 4 -x name --workers 2").stdout
    labels = pd.read_parquet(data / "data-clusters")["cluster"].to_numpy()
    frame = frame_of(data)[["a", "b", "c"]]
    found = coterie.KMeans(K, random_state=0).fit(frame)
    assert len(labels) == len(frame)
    assert len(np.unique(labels)) == len(np.unique(found.labels_)) == K


def test_the_usual_path_stays_as_it_was(data):
    assert call("cluster data/part0.parquet -k 4 -x name --json").exit_code == 0


@pytest.mark.parametrize("options", ["", "-k 2..5 --scale", "-k 4 -a medoids", "-a flow"])
def test_what_needs_a_table_is_fitted_to_a_sample_that_labels_all_rows(options, data, here, monkeypatch):
    monkeypatch.setattr(out_of_core, "SAMPLE", 600)
    frame = frame_of(data)
    colour = np.where(frame["a"] > 0, "red", "blue")
    (data / "data" / "part3.parquet").unlink(missing_ok=True)
    frame.assign(colour=colour, b=frame["b"].where(np.arange(1200) % 50 > 0)).to_parquet("mixed.parquet")
    document = json.loads(
        succeed(f"cluster mixed.parquet {options} --workers 1 -o labels --json --save m.model").stdout
    )
    assert document["rows"] == 1200
    labels = pd.read_parquet("labels")["cluster"].to_numpy()
    found = [cluster["rows"] for cluster in document["clusters"]]
    np.testing.assert_array_equal(np.bincount(labels[labels >= 0], minlength=len(found)), found)
    assert sum(found) + document["outliers"] == 1200
    assert "found in 600 rows" in document["notes"][0]
    from coterie.tabular import TableModel

    np.testing.assert_array_equal(TableModel.load("m.model").predict(pd.read_parquet("mixed.parquet")), labels)


def test_a_mixture_is_fitted_to_all_rows(data, here):
    document = json.loads(succeed("cluster data -x name -a flow --json --workers 1 -o labels").stdout)
    assert document["n_clusters"] == K
    assert "'c' has 98.5% of the total variance" in document["notes"][0]  # as in memory


def test_a_folder_of_labels_has_no_ending_of_a_table(data, here):
    assert "a folder of files" in refuse("cluster data -k 4 -x name -o labels.csv")
