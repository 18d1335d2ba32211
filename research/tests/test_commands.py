"""The commands of the package, called as ``coterie reproduce`` and ``coterie bench``."""

import json

import pytest
from typer.testing import CliRunner

from coterie.cli import app
from coterie_research import experiments


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
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
    def figure7(output, quick):
        (output / "figure7.json").write_text(json.dumps({"quick": quick}))
        return {}

    module = experiments._module("kmeans")
    monkeypatch.setattr(module, "figure7", figure7, raising=False)
    monkeypatch.setattr(module, "__all__", [*module.__all__, "figure7"])
    assert "kmeans/figure7" in succeed("reproduce").stdout.splitlines()
    assert "figure7.json" in succeed("reproduce", "kmeans/figure7", "--quick").stdout
    assert json.loads((folder / "results/quick/kmeans/figure7.json").read_text()) == {"quick": True}
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
