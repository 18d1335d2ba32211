"""The commands of the package, called as ``coterie reproduce``, ``bench``, ``train`` and ``ship``."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import coterie
from coterie.cli import app
from coterie_research import records


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(records, "settings", {})  # which the command sets
    return tmp_path


def call(*arguments):
    return CliRunner().invoke(app, [word for argument in arguments for word in argument.split()])


def succeed(*arguments):
    result = call(*arguments)
    assert result.exit_code == 0, result.stderr or result.exception
    return result


def refuse(*arguments):
    result = call(*arguments)
    assert result.exit_code == 2, (result.stdout, result.stderr, result.exception)
    assert result.stderr.startswith("coterie: ")
    return result.stderr


def test_experiments_are_found_by_name(folder, monkeypatch):
    def figure7(output, quick, steps=1, seeds: Sequence[int] = (), rows: Sequence[str] = ()):
        given = {"quick": quick, "steps": steps, "seeds": seeds, "rows": rows}
        return records.save(given, "kmeans/figure7", output, quick)

    monkeypatch.setitem(records.EXPERIMENTS, "kmeans/figure7", figure7)
    assert "kmeans/figure7" in succeed("reproduce").stdout.splitlines()
    assert "figure7.json" in succeed("reproduce", "kmeans/figure7", "--quick").stdout
    stored = json.loads((folder / "results/quick/kmeans/figure7.json").read_text())
    assert (stored["quick"], stored["steps"], stored["command"]) == (
        True,
        1,
        "coterie reproduce kmeans/figure7 --quick",
    )
    succeed("reproduce", "kmeans/figure7 --set steps=3 --set seeds=2 --set rows=a,b")
    stored = json.loads((folder / "results/kmeans/figure7.json").read_text())
    assert (stored["steps"], stored["seeds"], stored["rows"]) == (3, [2], ["a", "b"])
    assert stored["command"] == "coterie reproduce kmeans/figure7 --set steps=3 --set seeds=2 --set rows=a,b"
    for wrong in ("step=3", "steps"):
        assert "with one of: steps, seeds, rows" in refuse("reproduce", f"kmeans/figure7 --set {wrong}")
    complaint = refuse("reproduce", "kmeans/figure77")
    assert "Did you mean kmeans/figure7" in complaint
    assert "kmeans/table1" in complaint


def test_benchmarks_are_found_by_name(folder, monkeypatch):
    from coterie_research.benchmarks import harness, kmedoids, learned_lloyd

    for module in (kmedoids, learned_lloyd):
        cells = [harness.Cell("only one", lambda: {"data": "toy"})]
        toy = harness.Benchmark("toy", "A toy", cells=lambda quick, cells=cells: cells, columns={"data": "{data}"})
        monkeypatch.setattr(module, "BENCHMARK", toy)
    assert "kmedoids" in succeed("bench").stdout.split()
    document = json.loads(succeed("bench kmedoids --quick --json").stdout)
    assert document == json.loads((folder / "results/quick/kmedoids/toy.json").read_text())
    assert "| toy |" in succeed("bench kmedoids -o here").stdout
    assert (folder / "here/toy.json").exists()
    assert "Did you mean kmedoids?" in refuse("bench kmedoid")
    assert "Cells: only one" in refuse("bench kmedoids --only iris")
    for spelled in ("learned-lloyd", "learned_lloyd"):
        assert "--quick" in succeed(f"bench {spelled} --quick").stdout


def test_a_benchmark_whose_data_are_missing_says_where_to_put_them(monkeypatch):
    monkeypatch.setenv("COTERIE_DATA", "nowhere")
    assert "set COTERIE_DATA to the folder" in refuse("bench constraints --quick")


def test_unknown_networks_and_missing_configs_are_refused():
    assert "Known names" in refuse("train", "flwo", "--config", "a.json", "--output", "run")
    assert "--config names" in refuse("train", "flow", "--config", "a.json", "--output", "run")


def test_a_network_is_trained_shipped_listed_and_used(folder, monkeypatch):
    monkeypatch.setenv("COTERIE_HOME", str(folder / "home"))
    stages = [{"until": 3, "n_points": [24, 30], "n_layers": 2, "tokens": 64}]
    run = {"model": {"width": 16, "n_layers": 2}, "training": {"steps": 3, "log_every": 1}, "stages": stages}
    Path("flow.json").write_text(json.dumps(run))
    assert "coterie ship run NAME" in succeed("train flow --config flow.json --output run").stdout
    Path("scores.json").write_text('{"ari": 0.5}')
    assert "network mine" in succeed("ship run mine --scores scores.json --licence MIT").stdout
    assert "mine" in succeed("models").stdout
    X = np.random.default_rng(0).normal(size=(40, 2))
    assert coterie.FlowMixture(network="mine").fit(X).n_clusters_ >= 1
    assert "already a network 'mine'" in refuse("ship run mine")
    assert "comes with the package" in refuse("ship run zeroshot-3")
    assert "there is no run.json" in refuse("ship home mine")
    succeed("ship run mine --force")


@pytest.mark.parametrize("command", ["reproduce", "bench", "train", "ship"])
def test_help_reads(command):
    text = succeed(command, "--help").stdout
    assert "Usage: coterie " in text
    assert len(text.splitlines()) > 5
