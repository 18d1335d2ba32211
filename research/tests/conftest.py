"""A check of every record that a test writes with ``--quick``."""

import json
from pathlib import Path

import pytest

from coterie_research import records

RESULTS = Path(__file__).parents[2] / "results"
BESIDE = {"seconds", "cpu_seconds"}  # older records have the wall time, or no time


@pytest.fixture(scope="session", autouse=True)
def quick_records_have_the_keys_of_those_in_results():
    """A command writes with ``--quick`` what the record has that names the command."""
    save = records.save

    def checked(record, name, output, quick, **head):
        written = save(record, name, output, quick, **head)
        for path in RESULTS.glob(f"{name}*.json") if quick else ():
            stored = json.loads(path.read_text())
            earlier = "note" in stored  # of an earlier version, as its note says
            if f"{stored.get('command')} ".startswith(f"coterie reproduce {name} ") and not earlier:
                assert not (stored.keys() ^ written.keys()) - BESIDE, path.name
        return written

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "save", checked)
        yield
