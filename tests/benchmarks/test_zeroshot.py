import gzip

import numpy as np
import pytest

from coterie.benchmarks import _zeroshot_sets as sets
from coterie.benchmarks import zeroshot


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


def test_the_summary_tells_how_far_the_number_of_clusters_is_off():
    def row(found):
        cell = {"ari": 0.5, "nca": 0.5, "k": found, "seconds": 1.0}
        return {"group": "fcps", "name": "toy", "k": 3, "unknown": {"coterie": cell}}

    summary = zeroshot.summary([row(3), row(4), row(6)], "unknown")
    cell = summary["fcps"]["coterie"]
    assert cell["exact"] == pytest.approx(1 / 3)
    assert cell["within_one"] == pytest.approx(2 / 3)
    assert cell["k_error"] == pytest.approx(4 / 3)
    assert summary["wut"] == {}


def test_draws_are_the_same_every_time():
    one, other = (next(iter(sets.draws(1))) for _ in range(2))
    assert np.array_equal(one.X, other.X)
