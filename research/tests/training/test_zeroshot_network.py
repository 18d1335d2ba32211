import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie import checkpoints
from coterie.zeroshot.features.description import Description
from coterie.zeroshot.network import two_passes
from coterie.zeroshot.network.loading import ArrayNetwork
from coterie.zeroshot.network.two_passes import TwoPassConfig
from coterie_research.training.zeroshot.modules import TwoPassNetwork, build

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


def test_a_network_is_built_from_its_card():
    config = {k: list(v) if isinstance(v, tuple) else v for k, v in SMALL.to_dict().items()}  # from JSON
    assert build(config).config == SMALL


def test_the_shipped_network_is_a_torch_module_too():
    by_numpy, by_torch = checkpoints.load_arrays("zeroshot-3", kind="zeroshot"), checkpoints.load("zeroshot-3")
    seen = [by_torch.describe(np.random.default_rng(2).normal(size=(30, 2)))]
    one, other = (each.answer(seen, np.random.default_rng(0)) for each in (by_numpy, by_torch))
    np.testing.assert_allclose(one.natural_BNN, other.natural_BNN, atol=1e-3)
