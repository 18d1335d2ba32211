import re
import subprocess
import sys

from tests.fuzz import failures


def test_whatever_call_fails_the_file_is_the_old_one_or_the_new_one():
    """In a process of its own, because archives that were left half-written complain when they are collected."""
    command = [sys.executable, "-m", "tests.fuzz.failures", "--count", "42", "--seed", "1"]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert re.match("[45][0-9] injected failures, 0 left something wrong", ended.stdout), ended.stdout + ended.stderr
    assert ended.returncode == 0


def test_a_task_that_writes_in_place_is_seen():
    def in_place(path):
        with open(path, "wb") as file:
            for _ in range(10):
                file.write(b"x" * 100)

    found = {failures.attempt(in_place, "a", at, failures.errors()[0]) for at in range(1, 12)}
    assert any("neither the old file nor the new one" in said for said in found)
