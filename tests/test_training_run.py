import json

import pytest

from coterie.flow.train import FlowRun
from coterie.incontext.train import PairRun
from coterie.kmeans.train import LearnedLloydRun

CONFIGS = [
    (FlowRun, {"model": {"width": 16}, "stages": [{"until": 9, "n_points": [8, 9], "n_layers": 2, "tokens": 32}]}),
    (PairRun, {"model": {"width": 8}, "prior": {"dims": [1, 4]}, "pairs": 400}),
    (LearnedLloydRun, {"model": {"n_layers": 3}, "instances": {"kinds": ["blobs"]}, "batch": 4}),
]


@pytest.mark.parametrize(("kind", "parts"), CONFIGS)
def test_a_run_survives_its_way_through_json(kind, parts):
    run = kind.from_dict({**parts, "training": {"steps": 7, "betas": [0.8, 0.9]}})
    assert run.training.betas == (0.8, 0.9)
    assert kind.from_dict(json.loads(json.dumps(run.to_dict()))) == run


@pytest.mark.parametrize(("kind", "parts"), CONFIGS)
def test_unknown_parts_and_settings_are_named(kind, parts):
    with pytest.raises(ValueError, match="optimiser"):
        kind.from_dict({**parts, "training": {"steps": 7}, "optimiser": {}})
    with pytest.raises(ValueError, match=r"'training' has steps, .*got also step$"):
        kind.from_dict({**parts, "training": {"step": 7}})


def test_entries_of_a_list_of_parts_are_checked_too():
    with pytest.raises(ValueError, match=r"'stages' has until.*got also points"):
        FlowRun.from_dict({"model": {}, "training": {"steps": 1}, "stages": [{"until": 9, "points": 3}]})
