"""Likelihoods against hand computation, numerical integrals and their own draws."""

import math

import pytest
import torch

from coterie.generative.likelihoods import LIKELIHOODS, Bernoulli, ContinuousBernoulli, Gaussian

NO_VAR = torch.zeros(1)


def test_the_bernoulli_is_the_cross_entropy():
    x, logit = torch.tensor([[1.0, 0.25]]), torch.tensor([[2.0, -1.0]])
    p = logit.sigmoid()
    by_hand = (x * p.log() + (1 - x) * (1 - p).log()).sum()
    torch.testing.assert_close(Bernoulli().log_prob(x, logit, NO_VAR)[0], by_hand)


def test_the_gaussian_is_torchs():
    x, mean, log_var = torch.tensor([[0.3, -1.0]]), torch.tensor([[0.0, 1.0]]), torch.tensor([[0.5, -2.0]])
    normal = torch.distributions.Normal(mean, (log_var / 2).exp())
    torch.testing.assert_close(Gaussian().log_prob(x, mean, log_var), normal.log_prob(x).sum(-1))


def test_a_gaussian_on_one_repeated_value_stays_finite():
    x = torch.zeros(1, 3)
    assert Gaussian().log_prob(x, x, torch.full((1, 3), -1e4)).isfinite()


@pytest.mark.parametrize("logit", [-30.0, -3.0, -0.011, -0.009, 0.0, 0.009, 0.011, 3.0, 30.0])
def test_the_continuous_bernoulli_is_a_density_with_the_mean_it_states(logit):
    x = torch.linspace(0, 1, 200_001, dtype=torch.float64)[:, None]
    outputs = torch.full_like(x, logit)
    density = ContinuousBernoulli().log_prob(x, outputs, NO_VAR).exp()
    assert torch.trapezoid(density, x[:, 0]).item() == pytest.approx(1, abs=1e-6)
    mean = ContinuousBernoulli().mean(outputs[:1]).item()
    assert torch.trapezoid(density * x[:, 0], x[:, 0]).item() == pytest.approx(mean, abs=1e-6)


def test_the_continuous_bernoulli_agrees_with_torchs():
    logit, x = torch.tensor([[-2.0, 0.7, 5.0]]), torch.tensor([[0.2, 0.9, 0.5]])
    other = torch.distributions.ContinuousBernoulli(logits=logit).log_prob(x).sum(-1)
    torch.testing.assert_close(ContinuousBernoulli().log_prob(x, logit, NO_VAR), other)


@pytest.mark.parametrize("name", sorted(LIKELIHOODS))
@pytest.mark.parametrize("output", [-4.0, 0.0, 4.0])
def test_draws_have_the_stated_mean(name, output):
    likelihood, generator = LIKELIHOODS[name], torch.Generator().manual_seed(0)
    outputs = torch.full((100_000,), output)
    drawn = likelihood.draw(outputs, torch.zeros(1), generator)
    if name != "gaussian":
        assert drawn.min() >= 0
        assert drawn.max() <= 1
    assert drawn.mean().item() == pytest.approx(likelihood.mean(outputs[:1]).item(), abs=4 / math.sqrt(100_000))


@pytest.mark.parametrize("name", sorted(LIKELIHOODS))
def test_gradients_are_finite_at_and_around_zero(name):
    outputs = torch.tensor([[-1e-3, 0.0, 1e-3, 1e-2, 50.0, -50.0]], requires_grad=True)
    LIKELIHOODS[name].log_prob(torch.full((1, 6), 0.5), outputs, torch.zeros(1, 6)).sum().backward()
    assert outputs.grad.isfinite().all()


def test_one_variance_for_all_columns_is_that_variance_in_every_column_and_has_the_same_gradient():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 4, 3, generator=generator, dtype=torch.float64)
    output = torch.randn(2, 4, 3, generator=generator, dtype=torch.float64, requires_grad=True)
    one = torch.tensor([[[0.3]], [[-0.7]]], dtype=torch.float64)
    weights = torch.randn(2, 4, generator=generator, dtype=torch.float64)
    found = Gaussian().log_prob(x, output, one)
    (gradient,) = torch.autograd.grad((found * weights).sum(), output)
    wanted = Gaussian().log_prob(x, output, one.expand(2, 1, 3))
    (wanted_gradient,) = torch.autograd.grad((wanted * weights).sum(), output)
    torch.testing.assert_close(found, wanted)
    torch.testing.assert_close(gradient, wanted_gradient)
