import json

import numpy as np
import pytest

from coterie import checkpoints
from coterie.zeroshot.features.description import PAIR_FEATURES, describe
from coterie.zeroshot.network import loading, two_passes
from coterie.zeroshot.network.interface import Answer
from coterie.zeroshot.network.two_passes import BINS


@pytest.fixture(scope="module")
def shipped():
    return loading.load("zeroshot-3")


@pytest.mark.parametrize("n", [2, 3, 90])
def test_other_devices_answer_as_numpy_does(shipped, n):
    """The device "cpu:0" stands for those on which torch computes."""
    by_torch = loading.load("zeroshot-3", "cpu:0")
    seen = [describe(np.random.default_rng(5).normal(size=(n, 3)))]
    answers = [each.answer(seen, np.random.default_rng(0)) for each in (shipped, by_torch)]
    for one, other in zip(*answers, strict=True):
        assert one.dtype == other.dtype == np.float32
        np.testing.assert_allclose(one, other, atol=1e-3, rtol=1e-4)
    assert shipped is loading.load("zeroshot-3")
    np.testing.assert_array_equal(shipped.head, by_torch.head)


def test_affinities_are_mutual_and_numbers_of_clusters_have_probabilities(shipped):
    answer = shipped.answer([describe(np.random.default_rng(2).normal(size=(30, 2)))], np.random.default_rng(0))
    for logits in (answer.same_BNN, answer.natural_BNN):
        np.testing.assert_allclose(logits, logits.swapaxes(1, 2), atol=1e-4)
    proba = shipped.clusters_proba(answer)
    assert proba.shape == (1, 100)
    assert proba.sum() == pytest.approx(1, abs=1e-5)


def test_bins_of_the_number_of_clusters_are_exact_up_to_sixteen():
    logits = np.full((1, len(BINS)), -50.0)
    logits[0, BINS.index(17)] = 50.0
    nothing = np.zeros((1, 3))
    proba = two_passes.clusters_proba(Answer(nothing, nothing, nothing, logits, np.array([-50.0])))[0]
    np.testing.assert_allclose(proba[16:20], 1 / 4, atol=1e-5)
    assert proba[:16].sum() < 1e-5


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_the_description_has_no_unit(scale):
    points = np.random.default_rng(3).normal(size=(50, 4))
    one, other = describe(points), describe(points * scale + 3 * scale)
    np.testing.assert_allclose(
        other.pairs.reduced(PAIR_FEATURES).expanded(), one.pairs.reduced(PAIR_FEATURES).expanded(), atol=1e-3
    )
    np.testing.assert_allclose(other.points_NT, one.points_NT, atol=1e-3)


@pytest.mark.parametrize(
    "points",
    [np.zeros((5, 2)), np.array([[0.0], [1.0]]), np.repeat(np.eye(3), 20, axis=0), np.r_[np.zeros((40, 2)), [[1, 1]]]],
    ids=["all equal", "two", "many ties", "one apart"],
)
def test_degenerate_sets_are_described_and_read(shipped, points):
    seen = describe(points)
    assert all(np.isfinite(part).all() for part in (seen.points_NT, seen.coordinates_NC, seen.principal_ND))
    assert np.isfinite(seen.pairs.reduced(PAIR_FEATURES).expanded()).all()
    answer = shipped.answer([seen], np.random.default_rng(0))
    assert all(np.isfinite(part).all() for part in answer)


@pytest.mark.parametrize("change", [{"width": 32}, {"first": [6]}, {"n_clusters": 3}], ids=lambda change: str(change))
def test_a_card_that_does_not_fit_its_weights_is_named_without_torch_too(change, tmp_path):
    """The hash on the card is that of the weights, so that a changed card is what is found."""
    for suffix in (".json", ".safetensors"):
        (tmp_path / f"other{suffix}").write_bytes((checkpoints.SHELF / f"zeroshot-3{suffix}").read_bytes())
    card = json.loads((tmp_path / "other.json").read_text())
    (tmp_path / "other.json").write_text(json.dumps({**card, "config": {**card["config"], **change}}))
    with pytest.raises(ValueError, match="does not fit its card"):
        checkpoints.load_arrays(tmp_path / "other.json", kind="zeroshot")
