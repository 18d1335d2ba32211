"""The benchmarks of the k-means family, on tiny instances."""

import contextlib
import json

import pytest

from coterie_research.benchmarks import calls, kmeans, kmedoids, learned_lloyd, sizes


@pytest.mark.filterwarnings("ignore:Best performing initialization did not converge")
def test_single_calls_are_measured_beside_scikit_learn(monkeypatch):
    for name, value in {"PATIENCE": 0.0, "LEAST": 0.0, "SIZES": {"200×3, 4": (200, 3, 4)}}.items():
        monkeypatch.setattr(calls, name, value)
    rows = calls.of_kmeans("200×3, 4")
    expected = ["fit", "fit", "predict", "transform", "score", "partial_fit"]
    assert [row["call"].split()[0] for row in rows] == expected
    assert abs(rows[0]["inertia_ratio"] - 1) < 1e-5
    rows += calls.of_family("300×3, 4", 300, 3, 4)
    assert [row["peer"] for row in rows[-2:]] == ["coterie.KMeans", "GaussianMixture"]
    record = {"lines": rows, "threads": 1, "instructions": {}, "command": "c", "seed": 0, "seconds": 1.0}
    page = calls.BENCHMARK.markdown({**record, "machine": "m", "versions": {}})
    assert "| transform 200×3, 4 |" in page
    assert "geometric mean of peer ÷ coterie" in page


def test_a_cell_of_kmeans_has_equal_inertia_and_a_failed_method_is_told(tmp_path, monkeypatch):
    def fails():
        raise kmeans.MethodFailed("more than 0 s")

    @contextlib.contextmanager
    def here(**limits):
        yield lambda function, *arguments: function(*arguments)

    monkeypatch.setattr(kmeans, "alone", here)
    methods = {name: kmeans.METHODS[name] for name in ("coterie", "lloyd")}
    monkeypatch.setattr(kmeans, "METHODS", {**methods, "elkan": ("sklearn", fails)})
    monkeypatch.setattr(kmeans, "SETS", {"tiny": kmeans.DataSet(kmeans._uniform, 2_000, 4, 10)})
    record = kmeans.BENCHMARK.run(output=tmp_path)
    (row,) = json.loads(next(tmp_path.glob("kmeans*.json")).read_text())["cells"]
    assert row["best_peer"] == "lloyd"
    assert row["failed"] == {"elkan": "more than 0 s"}
    assert row["methods"]["coterie"]["inertia"] == pytest.approx(row["double_precision"]["inertia"], rel=1e-6)
    assert len(row["methods"]["coterie"]["all_seconds"]) == kmeans.REPEATS
    assert "fastest other ÷ coterie" in kmeans.BENCHMARK.markdown(record)


def test_kmedoids_is_within_one_percent_of_fasterpam(tmp_path, monkeypatch):
    monkeypatch.setattr(kmedoids, "_restarts", lambda quick: 1)
    record = kmedoids.BENCHMARK.run(output=tmp_path, only=["iris", "wine", "moons"])
    assert record["mean_ratio"] <= 1.01
    assert (tmp_path / "README.md").read_text().count("\n| ") >= 4


def test_learned_lloyd_says_what_it_left_out(tmp_path, monkeypatch):
    monkeypatch.delenv("COTERIE_DATA", raising=False)
    monkeypatch.setattr(learned_lloyd, "_instances", lambda quick: learned_lloyd.BATCH)
    monkeypatch.setattr(learned_lloyd, "MOST_LAYERS", 25)
    learned_lloyd._mnist_pca.cache_clear()
    record = learned_lloyd.BENCHMARK.run(output=tmp_path)
    assert {row["kind"] for row in record["rows"]} == {"blobs", "uniform"}
    assert "COTERIE_DATA" in record["missing"][0]
    assert all(row["ratio"] < 1 for row in record["rows"])


def test_sizes_are_kept_and_compared_if_the_other_package_is_there(monkeypatch):
    monkeypatch.setattr(sizes, "installed", lambda name: False)
    X, k, bounds = sizes.drawn(1)
    row = sizes._measured(X, k, bounds, n_init=1, random_state=0)
    assert row["ours_kept"]
    assert row["ours"] > 0
    assert "other" not in row
    assert sizes.page({"rows": [{**row, "cell": "set 1"}]}) == []
    rows = [{**row, "other": 2 * row["ours"], "other_seconds": 1.0, "cell": "set 1"}]
    assert "0.500 to 0.500" in sizes.page({"rows": rows})[0]
