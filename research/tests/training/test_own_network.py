"""The steps of docs/training.md, as a user follows them, with a few training steps instead of thousands."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from typer.testing import CliRunner

from coterie import ZeroShotClusterer, checkpoints
from coterie.cli import app

PAGE = (Path(__file__).parents[3] / "docs" / "training.md").read_text()


@pytest.fixture
def maps(tmp_path, monkeypatch):
    """The page's configuration, shortened."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COTERIE_HOME", str(tmp_path / "home"))
    config = json.loads(re.search(r"```json\n(.*?)```", PAGE, re.DOTALL)[1])
    config["model"]["width"] = 16
    config["training"].update(steps=4, decay_steps=2)
    config["stages"] = [
        {**stage, "until": 2 * number, "n_points": [24, 30], "pairs": 1000}
        for number, stage in enumerate(config["stages"], 1)
    ]
    config["choice_problems"] = 6
    Path("maps.json").write_text(json.dumps(config))
    return config


def run(*command):
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, (result.stderr, result.exception)
    return result.stdout


def test_a_network_for_ones_own_prior_from_training_to_labels(maps):
    for line in re.findall(r"^    coterie (\w.*)$", PAGE, re.MULTILINE)[:3]:
        told = run(*line.split())
    assert "maps" in told
    card = checkpoints.card("maps")
    assert card["data"]["clusters"] == maps["prior"]["clusters"]
    assert card["training"]["steps"] == 4
    assert checkpoints.load("maps", kind="zeroshot").config.width == 16
    X, _ = make_blobs(60, centers=2, random_state=0)
    parameter = "network" if "network" in ZeroShotClusterer().get_params() else "weights"
    assert ZeroShotClusterer(**{parameter: "maps"}).fit(X).labels_.shape == (60,)


def test_a_prior_in_python_is_trained_on_and_shipped(maps):
    code = next(block for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if "class" in block)
    names: dict = {"__name__": "example"}
    exec(compile(code, "training.md", "exec", dont_inherit=True), names)
    problem = names["Stripes"]().draw(np.random.default_rng(0), 50)
    assert problem.points_ND.shape == (50, 2)
    assert checkpoints.card("stripes")["kind"] == "zeroshot"
