import gzip

import numpy as np
import pytest

from coterie_research.benchmarks import labelled_sets as sets
from coterie_research.benchmarks import zeroshot
from coterie_research.benchmarks.methods import binned, differences, means


def test_a_battery_is_read_from_the_folder_that_the_environment_names(tmp_path, monkeypatch):
    folder = tmp_path / "clustering" / "wut"
    folder.mkdir(parents=True)
    with gzip.open(folder / "x1.data.gz", "wt") as data, gzip.open(folder / "x1.labels0.gz", "wt") as labels:
        data.write("1 2\n3 4\n5 6\n")
        labels.write("1\n2\n0\n")
    monkeypatch.setenv("COTERIE_DATA", str(tmp_path))
    (one,) = sets.battery("wut")
    assert (one.name, one.X.shape, one.n_clusters) == ("x1", (3, 2), 2)
    with pytest.raises(FileNotFoundError, match="set COTERIE_DATA"):
        list(sets.battery("fcps"))


def test_noise_is_not_scored():
    one = sets.LabelledSet("wut", "toy", np.zeros((5, 2)), np.array([1, 1, 2, 2, 0]))
    scored = zeroshot.score(one, np.array([0, 0, 1, 1, 1]), 0.5)
    assert scored["ari"] == scored["nca"] == 1
    assert scored["k"] == 2


def row(found, k=3, ari=0.5, other=0.25):
    cells = {
        name: {"ari": value, "nca": 0.5, "k": found, "seconds": 1.0}
        for name, value in (("coterie", ari), ("Ward", other))
    }
    return {"group": "fcps", "name": "toy", "n": 9, "d": 2, "k": k, "given": cells, "unknown": cells}


def test_the_summary_tells_how_far_the_number_of_clusters_is_off():
    cell = means([row(3), row(4), row(6)], "unknown")["coterie"]
    assert cell["exact"] == pytest.approx(1 / 3)
    assert cell["within_one"] == pytest.approx(2 / 3)
    assert cell["k_error"] == pytest.approx(4 / 3)
    assert "single_recall" not in cell


def test_the_summary_tells_how_many_single_clusters_are_found():
    assert means([row(1, k=1), row(2, k=1), row(3)], "unknown")["coterie"]["single_recall"] == 0.5


def test_differences_are_paired_and_have_an_interval():
    rows = [row(3, ari=0.5 + 0.1 * number, other=0.4 + 0.1 * number) for number in range(4)]
    mean, low, high = differences(rows, "given", "coterie")["Ward"]
    assert mean == pytest.approx(0.1)
    assert (low, high) == (pytest.approx(0.1), pytest.approx(0.1))
    low, high = differences([row(3, ari=1.0), row(3, ari=0.0)], "given", "coterie")["Ward"][1:]
    assert low < 0 < high


def test_reliability_is_counted_in_tenths():
    found = binned(np.array([0.05, 0.95, 1.0]), np.array([False, True, True]))
    assert found[0] == [1, 0.05, 0]
    assert found[9] == [2, 1.95, 2]


def test_draws_are_the_same_every_time_and_of_every_family(monkeypatch):
    monkeypatch.setattr(sets, "POINTS", (64, 129))
    one, other = (list(sets.draws(1)) for _ in range(2))
    assert [each.group for each in one] == ["draws shapes", "draws tables", "draws many", "draws mixed"]
    assert all(np.array_equal(each.X, again.X) for each, again in zip(one, other))


def test_a_table_is_read_with_its_class_in_the_last_column(tmp_path, monkeypatch):
    (tmp_path / "tables").mkdir()
    with gzip.open(tmp_path / "tables" / "toy.csv.gz", "wt") as file:
        file.write("x1,x2,class\n1,2,1\n3,4,2\n")
    monkeypatch.setenv("COTERIE_DATA", str(tmp_path))
    (one,) = sets.tables()
    assert (one.group, one.name, one.X.tolist(), one.n_clusters) == ("tables", "toy", [[1, 2], [3, 4]], 2)


def test_a_set_is_measured_by_all_methods_and_the_page_written(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(30, 2)), rng.normal(size=(30, 2)) + 9])
    one = sets.LabelledSet("draws shapes", "toy", X, np.repeat([1, 2], 30))
    seen = one._replace(group="seen")
    monkeypatch.setattr(zeroshot, "all_sets", lambda quick: [one, seen])
    monkeypatch.setattr(zeroshot, "speed", lambda: {"9 x 2": 0.1})
    monkeypatch.setattr(zeroshot.zeroshot_pictures, "fixed_sets", lambda: [seen])
    record = zeroshot.BENCHMARK.run(output=tmp_path)
    assert record["rows"][0]["unknown"]["coterie"]["ari"] == 1
    assert set(zeroshot.GIVEN) - {"Genie"} < set(record["rows"][0]["given"])
    page = (tmp_path / "zeroshot.md").read_text()
    assert "| coterie | 1.000 (1.000) | 1.000 (1.000) |" in page
    assert "Expected ARI" in page
    assert {path.name for path in tmp_path.glob("*.png")} == {"scores.png", "calibration.png", "failures.png"}
