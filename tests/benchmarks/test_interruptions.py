import random

from coterie.benchmarks import interruptions


def test_a_command_that_is_killed_leaves_whole_files():
    found = interruptions._cluster(1, random.Random(0))
    assert found["kills"] == 1
    assert found["ended"] >= 1
    assert found["damaged"] == 0
    result = {"command": "c", "kills": 1, "damaged": 0, "seconds": 1.0, "subjects": {"cluster": found}}
    assert "1 kills (cluster 1); 0 files half-written" in interruptions.markdown(result)
