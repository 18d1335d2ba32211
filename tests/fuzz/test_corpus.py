"""What once failed, in tables, models and checkpoints: today each ends in a result or in one sentence."""

import resource
import time
from pathlib import Path

import pytest

from tests.fuzz import fuzzer, seeds, targets

FOUND = sorted(path for path in (Path(__file__).parent / "corpus").iterdir() if path.suffix != ".md")
SECONDS, BYTES = 10.0, 3 * 2**29


def feed(path: Path) -> None:
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    targets.run(path)
    assert time.process_time() - start < SECONDS
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 < BYTES


@pytest.mark.parametrize(
    "kind",
    [*(".csv", ".tsv", ".gz", ".npy", ".parquet", ".xlsx", ".jsonl", ".sqlite"), *(".model", ".checkpoint", ".pt")]
    + [".card", ".request"],
)
def test_what_once_failed_ends_in_a_result_or_in_a_sentence(kind, tmp_path):
    failed = []
    for name, content in {**seeds.valid(), **seeds.once_failed()}.items():
        if name.endswith(kind):
            (tmp_path / name).write_bytes(content)
            try:
                feed(tmp_path / name)
            except Exception as error:
                failed.append(f"{name}: {type(error).__name__}: {error}")
    assert not failed, "\n".join(failed)


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.name)
def test_what_the_fuzzer_found_ends_in_a_result_or_in_a_sentence(path):
    feed(path)


def test_the_fuzzer_finds_an_error_and_keeps_its_input(tmp_path, monkeypatch):
    """With a reader that is broken for some bytes, as a test of the fuzzer itself."""

    def broken(path):
        if b"red" not in path.read_bytes():
            raise KeyError("red")

    monkeypatch.setattr(targets, "run", broken)
    found = fuzzer.rounds(tmp_path, seed=0, seconds=20.0, most=400)
    assert found
    assert all(b"red" not in path.read_bytes() for path in found)
    assert fuzzer.rounds(tmp_path / "again", seed=0, seconds=20.0, most=400, keep=False) == []


def test_mutations_depend_on_the_seed_alone():
    one, two = (fuzzer.Mutator(7) for _ in range(2))
    assert [one.draw() for _ in range(50)] == [two.draw() for _ in range(50)]
