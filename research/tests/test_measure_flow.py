import json

import numpy as np
import pytest

from coterie_research import experiments
from coterie_research.measure_flows import published, scoring


def quick(name, output):
    return experiments.find(f"flow/{name}")[f"flow/{name}"](output, quick=True)


@pytest.mark.parametrize("name", ["table2", "table11", "figure6", "figure7", "columns"])
def test_quick_runs_write_json_and_a_picture(tmp_path, name):
    record = quick(name, tmp_path)
    assert json.loads((tmp_path / f"{name}.json").read_text()) == json.loads(json.dumps(record))
    assert (tmp_path / f"{name}.png").stat().st_size > 10_000
    assert record["command"] == f"coterie reproduce flow/{name} --quick"


def test_every_table_of_the_document_has_a_function():
    assert set(published.TABLES) == set(range(1, 12))
    assert {f"flow/table{number}" for number in published.TABLES} <= set(experiments.available())


def test_kmeans_column_agrees_with_the_documents_within_noise():
    ours = scoring.summary(scoring.score_all({"kmeans": scoring.KMEANS}, 10.0, 1000, 100)["kmeans"])
    assert abs(ours["log"] - published.TABLES[3]["kmeans"]["moderate"]) < 4 * ours["log_se"]


def test_paired_differences_have_the_sign_of_the_better():
    rng = np.random.default_rng(0)
    b = rng.exponential(size=500)
    found = scoring.paired(0.5 * b, b)
    assert found["log"] == pytest.approx(np.log(0.5))
    assert found["mean"] < -3 * found["mean_se"]
    assert found["share_better"] == 1


def test_scores_that_were_kept_are_not_computed_again(tmp_path):
    path, scored = tmp_path / "scores.npz", []

    def score(data):
        scored.append(len(data))
        return data.snr_db_B

    def run(count):
        columns = {"fast": scoring.Column("a", score), "slow": scoring.Column("b", score, most=20)}
        return scoring.score_all(columns, 7.0, 30, count, scoring.Kept(path))

    assert {name: len(w2) for name, w2 in run(25).items()} == {"fast": 25, "slow": 20}
    assert scored == [20, 20, 20]
    assert np.allclose(run(25)["fast"], 7.0)
    assert scored == [20, 20, 20]


def test_the_centres_drawn_are_those_of_the_points_drawn(tmp_path):
    record = quick("figure1", tmp_path)
    assert (tmp_path / "figure1.png").stat().st_size > 10_000
    points, centers = np.array(record["tokens"]["0"]), np.array(record["centers"])
    nearest = np.linalg.norm(points[:, None] - centers, axis=-1).min(axis=1)
    spread = np.linalg.norm(points - points.mean(axis=0), axis=-1)
    assert (nearest**2).mean() < 0.2 * (spread**2).mean()  # at 10 dB the noise is a tenth of the signal


def test_cells_of_the_identity_are_marked_and_every_column_says_how_long_it_was_trained(tmp_path):
    record = quick("table1", tmp_path)
    rows = record["levels"]
    assert [rows[level]["uniform_floor"]["whole_steps"] for level in ("high", "moderate", "low")] == [0, 0, 1]
    assert rows["high"]["unit_floor"]["whole_steps"] == 2
    assert record["budgets"]["uniform_uniform"] == {"steps": 21_500, "cpu_minutes": 133}
    assert record["budgets"]["unit_unit"]["steps"] == 13_500


def test_each_networks_own_flow_time_is_drawn(tmp_path):
    record = quick("figure8", tmp_path)
    times = list(record["total"].values())
    assert times[0] != times[1] != times[2]
    assert all(np.diff(time).max() <= 0 for time in times)
    assert np.allclose(record["per_layer"]["64"], np.array(times[2]) / 64)
