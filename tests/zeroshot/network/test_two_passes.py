import json

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie import checkpoints
from coterie.zeroshot.features.description import PAIR_FEATURES, Description, describe
from coterie.zeroshot.network import two_passes
from coterie.zeroshot.network.interface import Answer
from coterie.zeroshot.network.loading import ArrayNetwork
from coterie.zeroshot.network.torch_modules import TwoPassNetwork, build
from coterie.zeroshot.network.two_passes import BINS, TwoPassConfig

SMALL = TwoPassConfig(width=16, n_heads=2, first=(1,), second=(1,), pair_channels=4)


class Given:
    """In place of a random generator: the given normal numbers, and no changes of sign."""

    def __init__(self, normal):
        self._normal = normal

    def normal(self, size):
        assert self._normal.shape == size
        return self._normal

    def choice(self, values, size):
        return np.ones(size, dtype=np.float32)


def untrained():
    torch.manual_seed(0)
    network = TwoPassNetwork(SMALL).eval()
    for parameter in network.parameters():  # an untrained layer is the identity: give it something to do
        parameter.data += 0.05 * torch.randn_like(parameter)
    return network


@pytest.fixture(scope="module")
def network():
    return untrained()


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**31), st.sampled_from([3, 17, 70]), st.integers(1, 6))
def test_the_order_of_the_points_does_not_matter(network, seed, n, dims):
    rng = np.random.default_rng(seed)
    points, random = rng.normal(size=(n, dims)), rng.normal(size=(1, n, 8))
    order = rng.permutation(n)
    seen = network.describe(points)
    moved = Description(
        seen.points_NT[order],
        seen.coordinates_NC[order],
        seen.pairs._replace(
            numbers_FNN=np.ascontiguousarray(seen.pairs.numbers_FNN[:, order][:, :, order]),
            merge_TNN=np.ascontiguousarray(seen.pairs.merge_TNN[:, order][:, :, order]),
        ),
        seen.principal_ND[order],
    )
    with torch.no_grad():
        straight = network([seen], Given(random))[0]
        permuted = network([moved], Given(random[:, order]))[0]
    torch.testing.assert_close(permuted.same_BNN, straight.same_BNN[:, order][:, :, order], atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(permuted.noise_BN, straight.noise_BN[:, order], atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(permuted.clusters_BK, straight.clusters_BK, atol=1e-4, rtol=1e-4)


def test_affinities_are_mutual_after_both_passes(network):
    with torch.no_grad():
        answers = network([network.describe(np.random.default_rng(2).normal(size=(30, 2)))], np.random.default_rng(0))
    assert len(answers) == 2
    for answer in answers:
        torch.testing.assert_close(answer.same_BNN, answer.same_BNN.mT)
        torch.testing.assert_close(answer.natural_BNN, answer.natural_BNN.mT)


def test_probabilities_of_the_number_of_clusters_sum_to_one(network):
    seen = [network.describe(np.random.default_rng(2).normal(size=(30, 2)))]
    proba = network.clusters_proba(network.answer(seen, np.random.default_rng(0)))
    assert proba.shape == (1, 100)
    assert proba.sum().item() == pytest.approx(1, abs=1e-5)


def test_before_training_the_second_pass_repeats_the_first():
    torch.manual_seed(0)
    network = TwoPassNetwork(SMALL)
    torch.nn.init.normal_(network.first.same_at_once.weight)
    with torch.no_grad():
        seen = [network.describe(np.random.default_rng(2).normal(size=(30, 2)))]
        first, second = network(seen, np.random.default_rng(0))
    bounded = first.same_BNN.clamp(-12, 12)
    offset = (second.same_BNN - bounded).flatten()
    torch.testing.assert_close(offset, offset[:1].expand_as(offset), atol=1e-4, rtol=1e-4)


def test_the_first_pass_takes_no_gradient_from_the_second_through_geometry():
    network = untrained()
    seen = [network.describe(np.random.default_rng(2).normal(size=(20, 2)))]
    network(seen, np.random.default_rng(0))[1].same_BNN.square().mean().backward()
    assert network.first.same.weight.grad is None  # used by the first pass's affinities alone
    assert network.first.stretches[0].steering.weight.grad.abs().sum() > 0  # through the tokens


def test_bins_of_the_number_of_clusters_are_exact_up_to_sixteen():
    logits = np.full((1, len(BINS)), -50.0)
    logits[0, BINS.index(17)] = 50.0
    nothing = np.zeros((1, 3))
    proba = untrained().clusters_proba(Answer(nothing, nothing, nothing, logits, np.array([-50.0])))[0]
    np.testing.assert_allclose(proba[16:20], 1 / 4, atol=1e-5)
    assert proba[:16].sum() < 1e-5


@pytest.mark.parametrize("n", [2, 3, 90])
def test_numpy_answers_as_torch_does(network, n):
    arrays = {name: weight.numpy() for name, weight in network.state_dict().items()}
    by_numpy = ArrayNetwork(two_passes, network.config, arrays)
    x = np.random.default_rng(5).normal(size=(n, 3))
    answers = [each.answer([each.describe(x)], np.random.default_rng(0)) for each in (by_numpy, network)]
    for one, other in zip(*answers, strict=True):
        assert one.dtype == np.float32
        np.testing.assert_allclose(one, other, atol=2e-4, rtol=1e-4)
    np.testing.assert_allclose(*[network.clusters_proba(each) for each in answers], atol=1e-5)


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
def test_degenerate_sets_are_described_and_read(network, points):
    seen = network.describe(points)
    assert all(np.isfinite(part).all() for part in (seen.points_NT, seen.coordinates_NC, seen.principal_ND))
    assert np.isfinite(seen.pairs.reduced(PAIR_FEATURES).expanded()).all()
    with torch.no_grad():
        answers = network([seen], np.random.default_rng(0))
    assert all(part.isfinite().all() for answer in answers for part in answer)


def test_a_network_is_built_from_its_card():
    config = {k: list(v) if isinstance(v, tuple) else v for k, v in SMALL.to_dict().items()}  # from JSON
    assert build(config).config == SMALL


def test_the_shipped_network_is_read_by_numpy_and_by_torch():
    by_numpy, by_torch = checkpoints.load_arrays("zeroshot-3", kind="zeroshot"), checkpoints.load("zeroshot-3")
    assert by_numpy is checkpoints.load_arrays("zeroshot-3", kind="zeroshot")
    seen = [by_torch.describe(np.random.default_rng(2).normal(size=(30, 2)))]
    one, other = (each.answer(seen, np.random.default_rng(0)) for each in (by_numpy, by_torch))
    np.testing.assert_allclose(one.natural_BNN, other.natural_BNN, atol=1e-3)


@pytest.mark.parametrize("change", [{"width": 32}, {"first": [6]}, {"n_clusters": 3}], ids=lambda change: str(change))
def test_a_card_that_does_not_fit_its_weights_is_named_without_torch_too(change, tmp_path):
    """The hash on the card is that of the weights, so that a changed card is what is found."""
    for suffix in (".json", ".safetensors"):
        (tmp_path / f"other{suffix}").write_bytes((checkpoints.SHELF / f"zeroshot-3{suffix}").read_bytes())
    card = json.loads((tmp_path / "other.json").read_text())
    (tmp_path / "other.json").write_text(json.dumps({**card, "config": {**card["config"], **change}}))
    with pytest.raises(ValueError, match="does not fit its card"):
        checkpoints.load_arrays(tmp_path / "other.json", kind="zeroshot")
