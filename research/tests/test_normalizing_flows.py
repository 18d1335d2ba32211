"""Normalizing flows in place of the autoencoders: densities that can be inverted, in the same EM loop."""

import numpy as np
import pytest
import torch

from coterie.generative.fitting import RestartPlan, Stage, fit_in_stages
from coterie.generative.mixture import EMSettings
from coterie.generative.split_merge import MovingMixture
from coterie_research.mixture_of_vaes.normalizing_flows import FlowConfig, Flows


def blobs(n=300, spread=1.0):
    """Three blobs in the plane, and the truth."""
    truth = torch.arange(n) % 3
    centers = torch.tensor([[0.0, 4.0], [-4.0, -2.0], [4.0, -2.0]])
    return centers[truth] + spread * torch.randn(n, 2, generator=torch.Generator().manual_seed(0)), truth


def one_hot(labels):
    return torch.nn.functional.one_hot(labels, 3).float()


def flows(n_networks=3, n_features=5, seed=0, spread=0.3) -> Flows:
    found = Flows(n_networks, FlowConfig(n_features, 8, 4), torch.Generator().manual_seed(seed)).double()
    generator = torch.Generator().manual_seed(seed + 1)
    for weight in found.parameters():  # untrained couplings are the identity
        weight.data += spread * torch.randn(weight.shape, generator=generator, dtype=torch.float64)
    return found.requires_grad_(False)


def test_a_flows_jacobian_is_that_of_autograd():
    many = flows(2, 4)
    x = torch.randn(1, 4, dtype=torch.float64)
    for g in range(2):
        which = slice(g, g + 1)
        jacobian = torch.autograd.functional.jacobian(lambda v: many(v[None], which)[0][0, 0], x[0])  # noqa: B023
        torch.testing.assert_close(many(x, which)[1][0, 0], torch.linalg.slogdet(jacobian)[1])


def test_a_flow_is_a_density():
    grid = torch.linspace(-9, 9, 601, dtype=torch.float64)
    x = torch.cartesian_prod(grid, grid)
    log_p = flows(1, 2, seed=5, spread=0.1).bound(x, torch.empty(1, 0))[0]
    assert float(log_p.exp().sum() * (18 / 600) ** 2) == pytest.approx(1, abs=0.005)


def test_a_flow_alone_is_the_flow_among_many():
    many, x_BD = flows(), torch.from_numpy(np.random.RandomState(0).randn(6, 5))
    together = many.bound(x_BD, torch.empty(1, 0))
    alone = torch.cat([many.bound(x_BD, torch.empty(1, 0), slice(g, g + 1)) for g in range(3)])
    torch.testing.assert_close(together, alone)


def test_flows_go_through_the_same_loop():
    x_ND, truth = blobs()
    (found,) = fit_in_stages(
        x_ND,
        lambda number: one_hot(truth),
        lambda generator: Flows(6, FlowConfig(2, 16, 4), generator),
        [Stage(EMSettings(3, least_steps=10), RestartPlan(3))],  # a flow learns 50 rows by heart if it is let
    )
    assert (torch.as_tensor(found.expectation.labels) == truth).float().mean() > 0.97


def test_a_move_is_tried_with_flows_too():
    x_ND, truth = blobs(240, 0.5)
    tangled = torch.where(truth < 2, 0, 1 + (x_ND[:, 1] > -2).long())  # two blobs in one cluster, the third in two
    how = EMSettings(3, least_steps=12, batch_size=32, learning_rate=1e-2, n_samples=1, move_until=2)
    mixture = MovingMixture(x_ND, one_hot(tangled), how)
    state = mixture.begin(Flows(6, FlowConfig(2, 16, 4), torch.Generator().manual_seed(0)))
    state = mixture.m_step(state, mixture.e_step(state))
    state.iteration = 2
    found = mixture.e_step(state)
    assert (found.move is None) == (len(state.refused) == 2)  # one flow can explain two blobs, so either is right
    torch.testing.assert_close(found.responsibilities_NK.sum(1), torch.ones(240))
