"""The same tables and options give the same labels as before; ``python -m tests.tabular.golden`` records them."""

import json

import pytest
from sklearn.metrics import adjusted_rand_score

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


def assert_recorded(found, recorded, *, encoded):
    """Axes of encoded tables differ in the last bit between versions of numpy, and random starts with them."""
    if not encoded:
        assert found == recorded
        return
    assert found.keys() == recorded.keys()
    for name, labels in found.items():
        assert adjusted_rand_score(list(labels), list(recorded[name])) > 0.98


@pytest.mark.parametrize("words", [marked(words) for words in golden.COMMANDS])
def test_a_command_gives_the_recorded_labels(tables, words):
    assert_recorded(golden.by_command(words), RECORDED[words], encoded="--encode" in words)


@pytest.mark.parametrize("sample, given", golden.STUDIO, ids=lambda value: json.dumps(value))
def test_a_run_of_the_studio_gives_the_recorded_labels(tmp_path, sample, given):
    found = golden.by_studio(sample, given, tmp_path / "run")
    assert_recorded(found, RECORDED[golden.name_of(sample, given)], encoded="habit" in given.get("columns", ()))
