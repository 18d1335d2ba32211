"""Learned Lloyd: the constructed layer with three numbers freed."""

import numpy as np
import pytest
import torch

from coterie import KMeans, checkpoints
from coterie.kmeans.learned import (
    SHIPPED,
    LearnedLloyd,
    LearnedLloydConfig,
    inertia,
    lloyd_layers,
    run_layers,
)


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
    for ours, plain in zip(network(x, start), lloyd_layers(x, start, 6)):
        torch.testing.assert_close(ours, plain, atol=1e-5, rtol=0)


@pytest.mark.parametrize("layers", SHIPPED)
def test_scale_and_place_do_not_matter(layers):
    x, start = (t.double() for t in instances())
    network = checkpoints.load(SHIPPED[layers], dtype=torch.float64)
    moved = network(1000 * x + 7, 1000 * start + 7)[-1]
    torch.testing.assert_close(moved, 1000 * network(x, start)[-1] + 7)


@pytest.mark.parametrize("weighted", [False, True])
def test_blocks_of_one_data_set_agree_with_the_batch(weighted):
    x, start = (t.double() for t in instances())
    weight = torch.randint(1, 4, x.shape[:2], generator=torch.Generator().manual_seed(1)).double() if weighted else None
    network = checkpoints.load(SHIPPED[10], dtype=torch.float64)
    together = network(x, start, weight)[-1]
    for b in range(len(x)):
        alone = run_layers(network, x[b].numpy(), start[b].numpy(), None if weight is None else weight[b].numpy())
        torch.testing.assert_close(alone, together[b], atol=1e-8, rtol=1e-8)


@pytest.mark.parametrize("layers", SHIPPED)
@pytest.mark.parametrize("kind", ["blobs", "uniform"])
def test_shipped_layers_get_lower_than_lloyd_in_as_many(kind, layers):
    network, ratios = checkpoints.load(SHIPPED[layers]), []
    for seed in range(10):
        x, start = instances(kind, 90_000 + seed, 3 + 2 * seed)
        plain = inertia(x, lloyd_layers(x, start, layers)[-1])
        with torch.no_grad():
            ratios.append(inertia(x, network(x, start)[-1]) / plain)
    assert torch.cat(ratios).mean() < 0.99


def test_kmeans_learned_ends_in_a_fixed_point():
    X = np.random.default_rng(0).uniform(size=(2000, 3))
    learned = KMeans(12, algorithm="learned", init="random", n_init=1, random_state=0, tol=0).fit(X)
    again = KMeans(12, init=learned.cluster_centers_, tol=0).fit(X)
    np.testing.assert_allclose(again.cluster_centers_, learned.cluster_centers_, atol=1e-12)
