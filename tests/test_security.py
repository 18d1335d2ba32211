"""Every promise of SECURITY.md names a test that exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NAMED = re.findall(r"\| `(tests/[\w/]+\.py)::(\w+)` \|", (ROOT / "SECURITY.md").read_text(encoding="utf-8"))


@pytest.mark.parametrize("file, test", NAMED, ids=lambda one: one)
def test_the_test_of_a_promise_exists(file, test):
    assert f"def {test}(" in (ROOT / file).read_text(encoding="utf-8")


def test_promises_are_found():
    assert len(NAMED) >= 25
