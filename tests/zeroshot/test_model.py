import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.zeroshot.description import PAIR_FEATURES, POINT_FEATURES, describe
from coterie.zeroshot.model import RANDOM_FEATURES, ZeroShotConfig, ZeroShotNetwork, build

SMALL = ZeroShotConfig(width=16, n_heads=2, n_stretches=2, stretch=2, pair_channels=4)


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    network = ZeroShotNetwork(SMALL).eval()
    for parameter in network.parameters():  # an untrained layer is the identity: give it something to do
        parameter.data += 0.05 * torch.randn_like(parameter)
    return network


def inputs(points, seed=0):
    seen = describe(points)
    random = torch.from_numpy(
        np.random.default_rng(seed).normal(size=(len(points), RANDOM_FEATURES)).astype(np.float32)
    )
    tensors = (torch.from_numpy(seen.points_NT), torch.from_numpy(seen.coordinates_NC), random)
    return [one[None] for one in (*tensors, torch.from_numpy(seen.pairs_FNN))]


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**31), st.sampled_from([2, 3, 17, 70]), st.integers(1, 6))
def test_the_order_of_the_points_does_not_matter(network, seed, n, dims):
    rng = np.random.default_rng(seed)
    given_inputs = inputs(rng.normal(size=(n, dims)))
    order = torch.from_numpy(rng.permutation(n))
    points, coordinates, random, pairs = given_inputs
    moved = [points[:, order], coordinates[:, order], random[:, order], pairs[:, :, order][:, :, :, order]]
    with torch.no_grad():
        straight, permuted = network(*given_inputs), network(*moved)
    torch.testing.assert_close(permuted.same_BNN, straight.same_BNN[:, order][:, :, order], atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(permuted.noise_BN, straight.noise_BN[:, order], atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(permuted.clusters_BK, straight.clusters_BK, atol=1e-4, rtol=1e-4)


def test_rows_at_a_time_give_what_all_at_once_give(network):
    arguments = inputs(np.random.default_rng(1).normal(size=(150, 3)))
    with torch.no_grad():
        in_parts = network(*arguments)
    torch.testing.assert_close(network(*arguments).same_BNN, in_parts.same_BNN, atol=1e-5, rtol=1e-4)


def test_affinities_are_mutual(network):
    with torch.no_grad():
        same = network(*inputs(np.random.default_rng(2).normal(size=(30, 2)))).same_BNN
    assert torch.equal(same, same.mT)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_the_description_has_no_unit(scale):
    points = np.random.default_rng(3).normal(size=(50, 4))
    one, other = describe(points), describe(points * scale + 3 * scale)
    np.testing.assert_allclose(other.pairs_FNN, one.pairs_FNN, atol=1e-3)
    np.testing.assert_allclose(other.points_NT, one.points_NT, atol=1e-3)


@pytest.mark.parametrize(
    "points",
    [np.zeros((5, 2)), np.array([[0.0], [1.0]]), np.repeat(np.eye(3), 20, axis=0), np.r_[np.zeros((40, 2)), [[1, 1]]]],
    ids=["all equal", "two", "many ties", "one apart"],
)
def test_degenerate_sets_are_described(points):
    seen = describe(points)
    assert seen.points_NT.shape == (len(points), POINT_FEATURES)
    assert seen.pairs_FNN.shape == (PAIR_FEATURES, len(points), len(points))
    assert all(np.isfinite(part).all() for part in seen)


def test_a_network_is_built_from_its_card():
    config = SMALL.to_dict()
    config["choice"] = list(config["choice"])  # as JSON gives it
    assert build(config).config == SMALL
