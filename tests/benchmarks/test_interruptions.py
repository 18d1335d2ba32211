import random
import sys

from coterie.benchmarks import interruptions

WRITER = """
import sys
from coterie.files import replacing
for number in range(200):
    with replacing(sys.argv[1] + "/a") as temporary:
        temporary.write_text(str(number % 10) * 200_000)
"""


def test_a_program_that_is_killed_leaves_whole_files():
    """A program that writes one file again and again stands for the slower commands."""

    def damaged(folder, whole):
        text = (folder / "a").read_text() if (folder / "a").exists() else ""
        return int(len(text) not in (0, 200_000) or len(set(text)) > 1)

    found = interruptions._interrupted(
        lambda folder: [sys.executable, "-c", WRITER, str(folder)], damaged, 2, random.Random(1)
    )
    assert found["kills"] == 2
    assert found["ended"] >= 1
    assert found["damaged"] == 0
    result = {"command": "c", "kills": 2, "damaged": 0, "seconds": 1.0, "subjects": {"writer": found}}
    assert "2 kills (writer 2); 0 files half-written" in interruptions.markdown(result)
