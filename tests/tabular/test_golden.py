"""The same tables and options give the same labels as before; ``python -m tests.tabular.golden`` records them."""

import json

import pytest

from tests.tabular import golden

RECORDED = json.loads(golden.FILE.read_text())


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("golden")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        golden.write_tables()
        yield folder


SLOW = ("flow", "rows.npy -k 4", "medoids")  # parts of commands that take seconds


def marked(words):
    return pytest.param(words, marks=pytest.mark.slow if any(part in words for part in SLOW) else ())


@pytest.mark.parametrize("words", [marked(words) for words in golden.COMMANDS])
def test_a_command_gives_the_recorded_labels(tables, words):
    assert golden.by_command(words) == RECORDED[words]


@pytest.mark.parametrize("sample, given", golden.STUDIO, ids=lambda value: json.dumps(value))
def test_a_run_of_the_studio_gives_the_recorded_labels(tmp_path, sample, given):
    assert golden.by_studio(sample, given, tmp_path / "run") == RECORDED[golden.name_of(sample, given)]
