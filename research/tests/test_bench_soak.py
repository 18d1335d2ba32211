import random
import time

from coterie_research.benchmarks import soak


def test_a_short_soak_loses_nothing(monkeypatch):
    monkeypatch.setattr(soak, "ROWS", 200)
    with soak.studio() as client:
        counted = soak._soak(client, time.monotonic() + 3, random.Random(3))
    assert counted["lost"] == 0, counted["errors"]
    assert counted["runs_done"] + counted["runs_killed"] + counted["runs_stopped"] >= 1
    assert counted["handles"]["most"] < 200
    used = {name: counted[name] for name in ("memory_mb", "handles")}
    cluster = {"kills": 0, "fits": 0, "lost": 0, **used}
    text = soak.markdown({**counted, "command": "c", "minutes": 0.1, "cluster": cluster})
    assert "**0 results lost**" in text
    assert "| server of the studio |" in text


def test_a_request_that_fails_is_a_lost_result():
    class Broken:
        def timed(self, *_, **__):
            time.sleep(0.05)
            raise RuntimeError("POST /api/tables: 500")

        def usage(self):
            return 1, 1

    counted = soak._soak(Broken(), time.monotonic() + 0.1, random.Random(0))
    assert counted["lost"] >= 1
    assert counted["errors"][0] == "RuntimeError: POST /api/tables: 500"
