import random
import time

from coterie.benchmarks import soak


def test_a_short_soak_loses_nothing(monkeypatch):
    monkeypatch.setattr(soak, "ROWS", 200)
    with soak._studio() as studio:
        counted = soak._soak(soak._Client(studio), time.monotonic() + 3, random.Random(3))
    assert counted["lost"] == 0
    assert counted["runs_done"] + counted["runs_killed"] + counted["runs_stopped"] >= 1
    assert counted["handles"]["most"] < 200
    text = soak.markdown({**counted, "command": "c", "minutes": 0.1, "cluster": {"kills": 0, "fits": 0, "lost": 0}})
    assert "**0 results lost**" in text
