import random
import sys

from coterie_research.benchmarks import interruptions

WRITER = """
import sys
from coterie.files import replacing
for number in range(60):
    with replacing(sys.argv[1] + "/a") as temporary:
        temporary.write_text(str(number % 10) * 200_000)
"""


def test_a_program_that_is_killed_leaves_whole_files():
    """A program that writes one file again and again stands for the slower commands."""

    def damaged(folder, whole):
        text = (folder / "a").read_text() if (folder / "a").exists() else ""
        return int(len(text) not in (0, 200_000) or len(set(text)) > 1)

    found = interruptions._interrupted(
        lambda folder: [sys.executable, "-c", WRITER, str(folder)], damaged, 4, random.Random(1)
    )
    assert found["kills"] == 4
    assert found["while_writing"] >= 1
    assert found["ended"] >= 1
    assert found["damaged"] == 0
    result = {"command": "c", "kills": 4, "damaged": 0, "seconds": 1.0, "subjects": {"writer": found}}
    assert "`c`: 4 kills; **0 files half-written" in interruptions.markdown(result)


def test_temporary_files_that_sigterm_leaves_are_counted():
    writer = "import sys, time; open(sys.argv[1] + '/.a', 'w').close(); time.sleep(0.5)"
    found = interruptions._interrupted(
        lambda folder: [sys.executable, "-c", writer, str(folder)], lambda folder, whole: 0, 4, random.Random(1)
    )
    assert found["damaged"] >= 1
