import math

import pytest
import torch

from coterie_research.measure_flows.dynamics import (
    clustering_rate,
    energy,
    integrate,
    nearest_neighbour_entropy,
    rate_bound,
    uniform_energy,
    velocity,
)


def tokens(n, dim, seed=0):
    x = torch.randn(n, dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    x[:, 0] += 0.5
    return x / x.norm(dim=1, keepdim=True)


def test_field_is_tangent_and_the_gradient_of_the_energy():
    x = tokens(20, 3).requires_grad_()
    value = torch.exp(2.0 * x @ x.T).mean() / (2 * 2.0)
    (gradient,) = torch.autograd.grad(value, x)
    x = x.detach()
    tangent = gradient - (gradient * x).sum(1, keepdim=True) * x
    field = velocity(x, 2.0)
    assert (field * x).sum(1).abs().max() < 1e-12
    torch.testing.assert_close(field, len(x) * tangent)


def test_uniform_energy_is_that_of_many_uniform_tokens():
    x = torch.randn(4000, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    x = x / x.norm(dim=1, keepdim=True)
    others = 1 - torch.eye(4000, dtype=torch.float64)
    estimate = (torch.exp(3.0 * x @ x.T) * others).sum() / others.sum() / (2 * 3.0)
    assert uniform_energy(4, 3.0) == pytest.approx(estimate.item(), rel=0.02)


@pytest.mark.parametrize("dim", [2, 3, 8])
@pytest.mark.parametrize("beta", [0.1, 1.0, 5.0])
def test_energy_rises_and_negative_entropy_grows_at_least_at_the_bound(dim, beta):
    run = integrate(tokens(60, dim), beta, time=6 * math.exp(-beta), n_steps=120)
    assert (torch.tensor(run.energy).diff() >= -1e-12).all()
    assert all(rate >= bound - 1e-9 for rate, bound in zip(run.rate, run.bound))
    assert run.negentropy[-1] > 0
    assert run.tokens[-1].norm(dim=1).sub(1).abs().max() < 1e-12


def test_kuramoto_on_the_circle_attains_the_bound():
    x = tokens(200, 2, seed=2)
    assert clustering_rate(x, 1e-4) == pytest.approx(rate_bound(x, 1e-4), rel=1e-3)


def test_divergence_agrees_with_how_arcs_shrink():
    """The change of log density along the flow is the change of log arc length between neighbours on the circle."""
    angle = torch.linspace(-1, 1, 401, dtype=torch.float64)
    x = torch.stack([angle.cos(), angle.sin()], 1)
    h = 1e-4
    moved = x + h * velocity(x, 2.0)
    moved_angle = torch.atan2(moved[:, 1], moved[:, 0])
    shrink = -torch.log(moved_angle.diff() / angle.diff()).mean().item() / h
    assert clustering_rate(x, 2.0) == pytest.approx(shrink, rel=0.02)


def test_entropy_estimate_of_a_gaussian():
    x = torch.randn(2, 2000, 2, generator=torch.Generator().manual_seed(3))
    exact = math.log(2 * math.pi * math.e)
    assert nearest_neighbour_entropy(x).mean().item() == pytest.approx(exact, abs=0.1)
    assert nearest_neighbour_entropy(0.1 * x).mean().item() == pytest.approx(exact + 2 * math.log(0.1), abs=0.1)


def test_energy_of_one_atom():
    x = torch.ones(3, 1, dtype=torch.float64)
    assert energy(x, 2.0) == pytest.approx(math.exp(2) / 4)
