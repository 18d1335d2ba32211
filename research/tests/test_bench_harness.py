"""What every benchmark gets from the harness."""

import json
import os
import time
from functools import partial

import pytest

from coterie_research.benchmarks import BENCHMARKS, find
from coterie_research.benchmarks.harness import Benchmark, Cell, MethodFailed, NoSuchCell, alone, filled
from coterie_research.benchmarks.methods import interval


def measured(calls, name):
    calls.append(name)
    if name == "b" and calls.count("b") == 1 and "fails" in calls:
        raise KeyboardInterrupt
    return {"name": name, "value": len(calls)}


def benchmark(calls, **settings):
    return Benchmark(
        name="toy",
        title="A toy",
        cells=lambda quick: [Cell(name, partial(measured, calls, name)) for name in "abc"],
        summary=lambda rows: {"total": len(rows)},
        intro="{total} rows.",
        columns={"name": "{name}", "value": "{value:.1f}", "lacking": "{other:.2f}"},
        **settings,
    )


def test_record_and_page_name_command_seed_seconds_machine_and_versions(tmp_path):
    record = benchmark([], seed=7).run(quick=True, output=tmp_path)
    assert json.loads((tmp_path / "toy.json").read_text()) == record
    assert (record["command"], record["seed"], record["total"]) == ("coterie bench toy --quick", 7, 3)
    assert record["seconds"] >= 0
    assert "CPUs" in record["machine"]
    assert record["versions"]["coterie"]
    page = (tmp_path / "README.md").read_text()
    assert "# A toy\n\n3 rows.\n" in page
    assert "| b | 2.0 | - |" in page


def test_an_interrupted_run_continues_with_the_cells_that_are_missing(tmp_path):
    calls = ["fails"]
    with pytest.raises(KeyboardInterrupt):
        benchmark(calls).run(output=tmp_path)
    assert not (tmp_path / "toy.json").exists()
    told = []
    record = benchmark(calls).run(output=tmp_path, tell=told.append)
    assert calls == ["fails", "a", "b", "b", "c"]
    assert [row["name"] for row in record["rows"]] == ["a", "b", "c"]
    assert told == ["a (1 of 3)", "b (2 of 3)", "c (3 of 3)"]
    assert not list(tmp_path.glob("*.jsonl"))
    benchmark(calls).run(output=tmp_path)  # a finished run is not continued
    assert calls[-3:] == ["a", "b", "c"]


def test_what_another_version_measured_is_measured_again(tmp_path):
    calls = ["fails"]
    with pytest.raises(KeyboardInterrupt):
        benchmark(calls, identity=lambda: "old").run(output=tmp_path)
    benchmark(calls, identity=lambda: "new").run(output=tmp_path)
    assert calls == ["fails", "a", "b", "a", "b", "c"]


def test_single_cells_are_measured_and_the_other_rows_kept(tmp_path):
    calls = []
    benchmark(calls).run(output=tmp_path)
    record = benchmark(calls).run(output=tmp_path, only=["b"])
    assert [row["value"] for row in record["rows"]] == [1, 4, 3]
    assert record["note"] == "From an earlier run: a, c."
    with pytest.raises(NoSuchCell, match=r"No cell has 'x' in its name\. Cells: a; b; c\."):
        benchmark(calls).run(output=tmp_path, only=["x"])


def test_a_peer_that_is_not_installed_is_named_and_a_package_that_is_needed_refused(tmp_path):
    record = benchmark([], peers=("no_such_peer",)).run(output=tmp_path)
    assert record["not_installed"] == ["no_such_peer"]
    assert "Not installed, and so not compared: no_such_peer." in (tmp_path / "README.md").read_text()
    with pytest.raises(ModuleNotFoundError, match="no_such_package"):
        benchmark([], needs=("no_such_package",)).run(output=tmp_path)


def test_a_method_alone_returns_fails_crashes_and_ends_in_time():
    with alone(seconds=60) as call:
        assert call(divmod, 7, 2) == (3, 1)
        assert call(os.getpid) != os.getpid()
        with pytest.raises(MethodFailed, match="ZeroDivisionError"):
            call(divmod, 7, 0)
        with pytest.raises(MethodFailed):
            call(os.abort)
    with alone(seconds=0.2) as call, pytest.raises(MethodFailed, match=r"more than 0\.2 s"):
        call(time.sleep, 60)


def test_figures_that_a_row_lacks_are_dashes():
    assert filled({"a": "{a:.1f}", "b": lambda row: row["b"]}, [{"a": None}])[2] == "| - | - |"


def test_an_interval_contains_the_mean_and_is_narrow_for_equal_differences():
    assert interval([0.1] * 5) == pytest.approx([0.1] * 3)
    mean, low, high = interval([1.0, 0.0, -0.5])
    assert low < mean < high


def test_every_benchmark_has_the_name_under_which_it_is_found():
    for name in BENCHMARKS:
        assert find(name).name.replace("_", "-") == name
