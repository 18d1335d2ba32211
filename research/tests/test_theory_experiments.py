"""The measured curves: their slopes are the theory's, and every record draws its picture."""

import json
from pathlib import Path

import pytest

from coterie_research import drawing, experiments
from coterie_research.incontext_em.theory import pictures
from coterie_research.records import curve, slope

RESULTS = Path(__file__).parents[2] / "results"


def test_the_slope_of_a_power_is_its_exponent_and_zeros_have_none():
    assert slope([1, 2, 4, 8], [1, 0.25, 1 / 16, 1 / 64]) == pytest.approx(-2)
    assert slope([1, 2, 4], [1, 0.5, 0]) is None
    assert curve("flat", [1, 2, 4], [3, 3, 3])["slope"] == pytest.approx(0)


@pytest.fixture
def run(tmp_path, monkeypatch):
    """An experiment, quick and without its picture."""
    monkeypatch.setattr(drawing, "draw", lambda picture, path: path.touch())
    return lambda name: experiments.find(f"theory/{name}")[f"theory/{name}"](tmp_path, True)


def test_the_exponent_in_n_is_the_c_of_the_temperature(run):
    record = run("expectation_error")
    slopes = {one["label"]: one["slope"] for one in record["against_n"]}
    assert abs(slopes["as printed, C = 2, mixture away from 0"]) < 0.1
    corrected = [slopes[f"corrected, C = {c}"] for c in (1, 2, 3)]
    assert corrected[0] < -0.3
    assert corrected[1] - corrected[0] == pytest.approx(-1, abs=0.5)
    assert corrected[2] - corrected[1] == pytest.approx(-1, abs=0.5)


def test_only_the_k_centres_compete_in_the_layer(run):
    record = run("hardmax_error")
    for c in (1, 2, 3):
        assert record["layer"][c - 1]["slope"] == pytest.approx(-c, abs=0.05)
        assert record["entries"][c - 1]["slope"] == pytest.approx(1 - c, abs=0.05)


@pytest.mark.parametrize("name", [name.partition("/")[2] for name in experiments.find("theory")])
def test_a_picture_is_drawn_from_the_record_alone(tmp_path, name):
    picture = getattr(pictures, name)(json.loads((RESULTS / f"theory/{name}.json").read_text()))
    drawing.draw(picture._replace(panels=picture.panels[:1], size=(6, 5)), tmp_path / "one.png")
    assert (tmp_path / "one.png").stat().st_size > 5_000


@pytest.mark.parametrize("name", ["fits", "maximisation_error", "parameter_norms"])
def test_the_quick_versions_write_what_the_record_holds(tmp_path, name, run):
    record = run(name)
    assert record["command"] == f"coterie reproduce theory/{name} --quick"
    recorded = json.loads((RESULTS / f"theory/{name}.json").read_text())
    assert set(record) - {"cpu_seconds"} == set(recorded) - {"seconds", "cpu_seconds"}
    assert {path.name for path in tmp_path.iterdir()} == {f"{name}.json", f"{name}.png"}
