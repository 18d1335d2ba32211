"""The batched VAEs against single ones, and their bounds against exact likelihoods."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.generative.vaes import VAEConfig, VAEs


def vaes(n_networks=3, n_features=5, latent_size=2, likelihood="gaussian", seed=0) -> VAEs:
    config = VAEConfig(n_features, 8, latent_size, likelihood)
    return VAEs(n_networks, config, torch.Generator().manual_seed(seed)).double().requires_grad_(False)


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 4), st.integers(1, 6), st.integers(1, 3), st.sampled_from(["gaussian", "bernoulli"]))
def test_a_network_of_many_is_the_network_alone(n_networks, n_rows, n_samples, likelihood):
    many = vaes(n_networks, likelihood=likelihood)
    x_BD = torch.rand(n_rows, 5, dtype=torch.float64)
    noise = torch.randn(n_samples, n_networks, n_rows, 2, dtype=torch.float64)
    together = many.bound(x_BD, noise)
    own_rows = many.bound(x_BD.expand(n_networks, -1, -1), noise)
    alone = torch.cat([many.bound(x_BD, noise[:, g : g + 1], slice(g, g + 1)) for g in range(n_networks)])
    torch.testing.assert_close(together, own_rows)
    torch.testing.assert_close(together, alone)


def test_the_elbo_by_hand():
    one = vaes(1, 3, 1, "bernoulli")
    x, noise = torch.tensor([[0.0, 1.0, 1.0]], dtype=torch.float64), torch.tensor([[[[0.7]]]], dtype=torch.float64)
    hidden = (x @ one.enter_weight[0] + one.enter_bias[0]).clamp_min(0)
    mean, log_var = (hidden @ one.encode_weight[0] + one.encode_bias[0])[0]
    z = mean + 0.7 * torch.exp(log_var / 2)
    p = torch.sigmoid(
        (z * one.widen_weight[0] + one.widen_bias[0]).clamp_min(0) @ one.leave_weight[0] + one.leave_bias[0]
    )
    fit = torch.log(1 - p[0, 0]) + torch.log(p[0, 1]) + torch.log(p[0, 2])
    kl = 0.5 * (log_var.exp() + mean**2 - 1 - log_var)
    torch.testing.assert_close(one.bound(x, noise)[0, 0], fit - kl)


def test_dropout_is_drawn_from_the_given_generator_in_training_only():
    config = VAEConfig(5, 64, 2, "gaussian", precision=3.0, dropout=0.5)
    many = VAEs(2, config, torch.Generator().manual_seed(0)).requires_grad_(False)
    x_BD, noise = torch.rand(4, 5), torch.randn(1, 2, 4, 2)
    one, two, other = (many.bound(x_BD, noise, dropout=torch.Generator().manual_seed(seed)) for seed in (0, 0, 1))
    assert torch.equal(one, two)
    assert not torch.equal(one, other)
    assert torch.equal(many.bound(x_BD, noise), many.bound(x_BD, noise))
    kept = many._dropped(torch.ones(2, 1000, 64), torch.Generator().manual_seed(0))
    assert set(kept.unique().tolist()) == {0.0, 2.0}
    assert kept.mean().item() == pytest.approx(1, abs=0.02)  # scaled so that the mean stays


def test_a_given_precision_is_not_trained():
    fixed = VAEs(2, VAEConfig(5, 8, 2, "gaussian", precision=4.0), torch.Generator().manual_seed(0))
    assert not fixed.log_var_GD.requires_grad
    torch.testing.assert_close(fixed.log_var_GD.exp(), torch.full((2, 1), 0.25))


def test_the_bound_is_below_the_likelihood():
    """log p(x) by numerical integration over the one latent dimension."""
    one = vaes(1, 4, 1, seed=3)
    x_BD = torch.randn(20, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    z = torch.linspace(-8, 8, 4001, dtype=torch.float64)
    output = one.decode(z[None, :, None])
    log_like = one.likelihood.log_prob(x_BD[:, None], output, one.log_var_GD[:, None])
    log_joint = log_like - 0.5 * z**2 - 0.5 * math.log(2 * math.pi)
    exact_B = torch.logsumexp(log_joint, 1) + math.log(16 / 4000)
    noise = torch.randn(3000, 1, 20, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    assert (one.bound(x_BD, noise)[0] <= exact_B + 1e-2).all()
