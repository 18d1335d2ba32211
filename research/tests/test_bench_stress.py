import random
import sys
import time

from coterie_research.stress import interruptions, soak

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
    assert interruptions.summary([{**found, "cell": "writer"}])["subjects"]["writer"]["ended"] == found["ended"]


def test_temporary_files_that_sigterm_leaves_are_counted():
    writer = "import sys, time; open(sys.argv[1] + '/.a', 'w').close(); time.sleep(0.5)"
    found = interruptions._interrupted(
        lambda folder: [sys.executable, "-c", writer, str(folder)], lambda folder, whole: 0, 4, random.Random(1)
    )
    assert found["damaged"] >= 1


def test_a_short_soak_loses_nothing(monkeypatch):
    monkeypatch.setattr(soak, "ROWS", 200)
    monkeypatch.setattr(soak, "ALGORITHMS", ("kmeans",))  # the others take seconds to compile
    with soak.studio() as client:
        counted = soak._soak(client, time.monotonic() + 1, random.Random(3))
    assert counted["lost"] == 0, counted["errors"]
    assert counted["runs_done"] + counted["runs_killed"] + counted["runs_stopped"] >= 1
    assert counted["handles"]["most"] < 200
    used = {name: counted[name] for name in ("memory_mb", "handles")}
    cluster = {"kills": 0, "fits": 0, "lost": 0, **used}
    text = "\n".join(soak.page({**counted, "minutes": 0.1, "cluster": cluster}))
    assert "**0 results lost**" in text
    assert "| server of the studio |" in text


def test_a_request_that_fails_is_a_lost_result():
    class Broken:
        def ask(self, *_, **__):
            time.sleep(0.05)
            raise RuntimeError("POST /api/tables: 500")

        def usage(self):
            return 1, 1

    counted = soak._soak(Broken(), time.monotonic() + 0.1, random.Random(0))
    assert counted["lost"] >= 1
    assert counted["errors"][0] == "RuntimeError: POST /api/tables: 500"
