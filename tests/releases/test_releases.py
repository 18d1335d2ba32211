"""Files of every release are read by today's code, and predict what they predicted then.

Those of 0.1.0 were written by the last commit before anything was listed as unreleased, 756ae27.
"""

import json
from pathlib import Path

import pytest

import coterie
from coterie import checkpoints
from coterie.distributed.checkpointing import Checkpoint
from coterie.tables.table import read_table
from coterie.tabular import TableModel
from tests.releases.write import estimators, rows

RELEASES = sorted(path for path in Path(__file__).parent.iterdir() if (path / "expected.json").is_file())


@pytest.fixture(params=RELEASES, ids=lambda path: path.name)
def release(request):
    return request.param


def expected(release, name):
    return json.loads((release / "expected.json").read_text())[name]


@pytest.mark.parametrize("name", estimators())
def test_models_predict_the_same(name, release):
    model = coterie.load(release / f"{name}.model")
    assert type(model).__name__ == name
    assert model.predict(rows()).tolist() == expected(release, name)


def test_the_model_of_a_table_predicts_the_same(release):
    model = TableModel.load(release / "mixed.model")
    assert model.encoding.names == ["size", "colour", "when"]
    assert model.predict(read_table(release / "mixed.csv")).tolist() == expected(release, "mixed")


def test_checkpoints_are_read_and_belong_to_their_release(release):
    """The centres can be used as a start; to resume, the rows and all parameters must be known to be the same."""
    read = Checkpoint(release / "KMeans.checkpoint", resume=True).load({})
    assert read.places.tolist() == expected(release, "checkpoint")
    with pytest.raises(ValueError, match="belongs to another fit: its version is"):
        Checkpoint(release / "KMeans.checkpoint", resume=True).load({"version": "99.0"})


@pytest.mark.parametrize("network", ["incontext-1", "zeroshot", "learned-lloyd-10"])
def test_networks_of_the_first_release_are_still_found(network):
    """They are part of one of the two packages, with the hashes that they had."""
    hashes = {"incontext-1": "ad3fdf4121f7dc91", "zeroshot": "88028203ddb20c21", "learned-lloyd-10": "7e4e125541437c1c"}
    if network == "zeroshot":
        pytest.importorskip("coterie_research", reason="which has the networks of earlier versions")
    assert checkpoints.card(network)["sha256"].startswith(hashes[network])
    if network == "zeroshot":  # which is no longer trained
        assert checkpoints.load_arrays(network, kind="zeroshot").config.max_clusters == 16
    else:
        assert sum(weight.numel() for weight in checkpoints.load(network).parameters()) > 0
