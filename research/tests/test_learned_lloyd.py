"""Learned Lloyd: the constructed layer with three numbers freed."""

import pytest
import torch

from coterie import checkpoints
from coterie.kmeans.learned import LearnedLloyd, LearnedLloydConfig, run_layers
from coterie_research.kmeans_transformers.learned import SHIPPED, inertia, layers, lloyd_layers


def instances(kind="blobs", seed=0, k=5):
    """Six data sets, and random rows of each as starting centres."""
    g = torch.Generator().manual_seed(seed)
    x = torch.rand(6, 30 * k, 4, generator=g)
    if kind == "blobs":
        x = 2 * torch.randn(6, k, 4, generator=g).repeat(1, 30, 1) + torch.randn(6, 30 * k, 4, generator=g)
    return x, x[:, torch.randperm(30 * k, generator=g)[:k]]


def test_with_a_large_gamma_step_one_and_no_momentum_it_is_lloyd():
    x, start = (t.double() for t in instances())
    network = LearnedLloyd(LearnedLloydConfig(n_layers=6, first_gamma=1e7, last_gamma=1e7)).double()
    for ours, plain in zip(layers(network, x, start), lloyd_layers(x, start, 6)):
        torch.testing.assert_close(ours, plain, atol=1e-5, rtol=0)


@pytest.mark.parametrize("n_layers", SHIPPED)
def test_scale_and_place_do_not_matter(n_layers):
    x, start = (t.double() for t in instances())
    network = checkpoints.load(SHIPPED[n_layers], dtype=torch.float64)
    moved = layers(network, 1000 * x + 7, 1000 * start + 7)[-1]
    torch.testing.assert_close(moved, 1000 * layers(network, x, start)[-1] + 7)


@pytest.mark.parametrize("weighted", [False, True])
def test_blocks_of_one_data_set_agree_with_the_batch(weighted):
    x, start = (t.double() for t in instances())
    weight = torch.randint(1, 4, x.shape[1:2], generator=torch.Generator().manual_seed(1)) if weighted else None
    network = checkpoints.load(SHIPPED[10], dtype=torch.float64)
    repeated = x if weight is None else x.repeat_interleave(weight, 1)
    together = layers(network, repeated, start)[-1]
    for b in range(len(x)):
        alone = run_layers(network, x[b].numpy(), start[b].numpy(), None if weight is None else weight.double().numpy())
        torch.testing.assert_close(alone, together[b], atol=1e-8, rtol=1e-8)


@pytest.mark.parametrize("n_layers", SHIPPED)
@pytest.mark.parametrize("kind", ["blobs", "uniform"])
def test_shipped_layers_get_lower_than_lloyd_in_as_many(kind, n_layers):
    network, ratios = checkpoints.load(SHIPPED[n_layers]), []
    for seed in range(10):
        x, start = instances(kind, 90_000 + seed, 3 + 2 * seed)
        plain = inertia(x, lloyd_layers(x, start, n_layers)[-1])
        with torch.no_grad():
            ratios.append(inertia(x, layers(network, x, start)[-1]) / plain)
    assert torch.cat(ratios).mean() < 0.99
