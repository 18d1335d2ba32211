"""Likelihoods of a row given a decoder's output: Bernoulli, continuous Bernoulli, Gaussian.

Outputs are logits, or means for the Gaussian. The Gaussian's log-variances are separate weights: one per network and
column if they are learned, one per network if the precision is given. The continuous Bernoulli is the density on [0, 1]
that is proportional to the Bernoulli's p^x (1-p)^(1-x). In terms of the logit l its constant is l / tanh(l / 2) and its
mean 1 / (1 - exp(-l)) - 1 / l.
"""

import math
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

LEAST_LOG_VAR = math.log(1e-4)  # of standardised columns: a density must not grow without bound on repeated values
_NEAR_ZERO = 1e-2  # where the closed forms of the continuous Bernoulli lose digits and a series takes over


class Likelihood(Protocol):
    """log p(x | output), summed over columns; the mean; draws."""

    def log_prob(self, x: Tensor, output: Tensor, log_var: Tensor) -> Tensor: ...
    def mean(self, output: Tensor) -> Tensor: ...
    def draw(self, output: Tensor, log_var: Tensor, generator: torch.Generator) -> Tensor: ...


class Bernoulli:
    def log_prob(self, x: Tensor, output: Tensor, log_var: Tensor) -> Tensor:
        return torch.linalg.vecdot(x, output) - F.softplus(output).sum(-1)

    def mean(self, output: Tensor) -> Tensor:
        return output.sigmoid()

    def draw(self, output: Tensor, log_var: Tensor, generator: torch.Generator) -> Tensor:
        return (_uniform(output, generator) < output.sigmoid()).to(output.dtype)


class ContinuousBernoulli:
    def log_prob(self, x: Tensor, output: Tensor, log_var: Tensor) -> Tensor:
        return torch.linalg.vecdot(x, output) + (_log_constant(output) - F.softplus(output)).sum(-1)

    def mean(self, output: Tensor) -> Tensor:
        small = output.abs() < _NEAR_ZERO
        safe = torch.where(small, torch.ones_like(output), output)
        return torch.where(small, 0.5 + output / 12, 1 / -torch.expm1(-safe) - 1 / safe)

    def draw(self, output: Tensor, log_var: Tensor, generator: torch.Generator) -> Tensor:
        """By the inverse of the distribution function, log(1 + u (e^l - 1)) / l, for l <= 0; mirrored for l > 0."""
        uniform = _uniform(output, generator)
        negative = -output.abs()
        small = negative > -_NEAR_ZERO
        safe = torch.where(small, -torch.ones_like(output), negative)
        drawn = torch.where(small, uniform, torch.log1p(uniform * torch.expm1(safe)) / safe).clamp(0, 1)
        return torch.where(output > 0, 1 - drawn, drawn)


class Gaussian:
    def log_prob(self, x: Tensor, output: Tensor, log_var: Tensor) -> Tensor:
        n_features = output.shape[-1]
        constant = n_features * math.log(2 * math.pi)
        if log_var.shape[-1] == 1:  # one variance for all columns
            log_var = log_var[..., 0]
            sq = _SquaredDistance.apply(output, x)
            return -0.5 * (sq * (-log_var).exp() + n_features * log_var + constant)
        log_var = log_var.clamp_min(LEAST_LOG_VAR)
        sq = (x - output).square()
        return -0.5 * ((sq * (-log_var).exp()).sum(-1) + log_var.sum(-1) + constant)

    def mean(self, output: Tensor) -> Tensor:
        return output

    def draw(self, output: Tensor, log_var: Tensor, generator: torch.Generator) -> Tensor:
        noise = torch.randn(output.shape, generator=generator, dtype=output.dtype, device=output.device)
        return output + noise * (log_var.clamp_min(LEAST_LOG_VAR) / 2).exp()


class _SquaredDistance(torch.autograd.Function):
    """|output - x|^2 over the last axis, with a gradient for the output only.

    Autograd would keep and walk through three tensors of the output's size. Here there is one, which halves the time
    of a training step.
    """

    @staticmethod
    def forward(ctx, output: Tensor, x: Tensor) -> Tensor:
        difference = output - x
        ctx.save_for_backward(difference)
        return torch.linalg.vecdot(difference, difference)

    @staticmethod
    def backward(ctx, gradient: Tensor):
        (difference,) = ctx.saved_tensors
        return difference * (2 * gradient)[..., None], None


LIKELIHOODS: dict[str, Likelihood] = {
    "bernoulli": Bernoulli(),
    "continuous_bernoulli": ContinuousBernoulli(),
    "gaussian": Gaussian(),
}


def _log_constant(logit: Tensor) -> Tensor:
    small = logit.abs() < _NEAR_ZERO
    safe = torch.where(small, torch.ones_like(logit), logit)
    return torch.where(small, math.log(2) + logit.square() / 12, (safe / torch.tanh(safe / 2)).log())


def _uniform(like: Tensor, generator: torch.Generator) -> Tensor:
    return torch.rand(like.shape, generator=generator, dtype=like.dtype, device=like.device)
