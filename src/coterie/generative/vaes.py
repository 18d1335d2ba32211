"""Many small VAEs as one module: every weight has the networks as its first axis, every layer is one batched product.

Shapes: G networks, B rows each, D columns, H hidden units, L latent dimensions, S samples. Rows are given as ``x_BD``,
shared by all networks, or as ``x_GBD``, different for each network.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from coterie.generative.likelihoods import LIKELIHOODS


class Densities(Protocol):
    """G densities that EM can fit: the mixture's loop knows nothing else about them."""

    noise_size: int  # columns of the noise that one evaluation of a bound takes

    def bound(
        self, x: Tensor, noise: Tensor, networks: slice = slice(None), *, dropout: torch.Generator | None = None
    ) -> Tensor:
        """(G, B) lower bounds of log p(x), differentiable. In training, dropout is drawn from the given generator."""

    def codes(self, x: Tensor, networks: slice = slice(None)) -> Tensor:
        """Rows in the networks' latent spaces, (G, B, L): standard normal if the networks fit."""

    def fresh(self, n_networks: int, generator: torch.Generator) -> "Densities":
        """Untrained ones of the same kind."""

    def to(self, device: torch.device) -> "Densities": ...
    def parameters(self) -> Iterator[nn.Parameter]: ...
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: dict[str, Any]) -> Any: ...


@dataclass(frozen=True)
class VAEConfig:
    n_features: int
    hidden_size: int
    latent_size: int
    likelihood: str
    precision: float | None = None  # of the Gaussian, for all columns; None learns one per network and column
    dropout: float = 0.0  # share of the hidden units, in training


class VAEs(nn.Module):
    """G variational autoencoders, each with one hidden layer on either side of the latent space."""

    def __init__(self, n_networks: int, config: VAEConfig, generator: torch.Generator):
        super().__init__()
        self.config = config
        self.likelihood = LIKELIHOODS[config.likelihood]
        self.noise_size = config.latent_size
        D, H, L = config.n_features, config.hidden_size, config.latent_size
        for name, n_in, n_out in (("enter", D, H), ("encode", H, 2 * L), ("widen", L, H), ("leave", H, D)):
            weight, bias = linear_weights(n_networks, n_in, n_out, generator)
            self.register_parameter(f"{name}_weight", weight)
            self.register_parameter(f"{name}_bias", bias)
        learned = config.likelihood == "gaussian" and config.precision is None
        log_var = 0.0 if config.precision is None else -math.log(config.precision)
        size = (n_networks, D if config.precision is None else 1)
        self.log_var_GD = nn.Parameter(torch.full(size, log_var), requires_grad=learned)

    def fresh(self, n_networks: int, generator: torch.Generator) -> "VAEs":
        return VAEs(n_networks, self.config, generator)

    def encode(
        self, x: Tensor, networks: slice = slice(None), *, dropout: torch.Generator | None = None
    ) -> tuple[Tensor, Tensor]:
        """Mean and log-variance of q(z | x), (G, B, L) each."""
        hidden_GBH = self._dropped(self._layer("enter", x, networks).relu_(), dropout)
        code_GBC = self._layer("encode", hidden_GBH, networks).to(self.log_var_GD.dtype)  # sums need all their digits
        mean_GBL, log_var_GBL = code_GBC.chunk(2, -1)
        return mean_GBL, log_var_GBL.clamp(-12, 6)

    def codes(self, x: Tensor, networks: slice = slice(None)) -> Tensor:
        """Means of q(z | x), (G, B, L)."""
        return self.encode(x, networks)[0]

    def decode(self, z_GBL: Tensor, networks: slice = slice(None), *, dropout: torch.Generator | None = None) -> Tensor:
        """The likelihood's parameters, (G, B, D)."""
        hidden_GBH = self._dropped(self._layer("widen", z_GBL, networks).relu_(), dropout)
        return self._layer("leave", hidden_GBH, networks).to(self.log_var_GD.dtype)

    def bound(
        self, x: Tensor, noise: Tensor, networks: slice = slice(None), *, dropout: torch.Generator | None = None
    ) -> Tensor:
        """The ELBO, (G, B). ``noise``: standard normal, (S, G, B, L) or of a shape that broadcasts to it."""
        mean_GBL, log_var_GBL = self.encode(x, networks, dropout=dropout)
        fits = []
        for one in noise:
            output_GBD = self.decode(mean_GBL + one * (log_var_GBL / 2).exp(), networks, dropout=dropout)
            fits.append(self.likelihood.log_prob(x, output_GBD, self.log_var_GD[networks, None]))
        return torch.stack(fits).mean(0) - kl_from_standard_normal(mean_GBL, log_var_GBL)

    def _layer(self, name: str, x: Tensor, networks: slice) -> Tensor:
        weight_GIO, bias_GO = getattr(self, f"{name}_weight")[networks], getattr(self, f"{name}_bias")[networks]
        return torch.baddbmm(bias_GO[:, None], x.expand(len(weight_GIO), -1, -1), weight_GIO)

    def _dropped(self, hidden_GBH: Tensor, generator: torch.Generator | None) -> Tensor:
        """With one mask per row for all networks, so that chance favours none of them."""
        rate = self.config.dropout
        if generator is None or not rate:
            return hidden_GBH
        kept_1BH = torch.rand(1, *hidden_GBH.shape[1:], generator=generator) >= rate
        return hidden_GBH * kept_1BH.to(hidden_GBH) / (1 - rate)


def kl_from_standard_normal(mean_GBL: Tensor, log_var_GBL: Tensor) -> Tensor:
    """KL(q(z | x) || N(0, I)), (G, B)."""
    return 0.5 * (log_var_GBL.exp() + mean_GBL.square() - 1 - log_var_GBL).sum(-1)


def linear_weights(n_networks: int, n_in: int, n_out: int, generator: torch.Generator):
    """As torch.nn.Linear starts: uniform within one over the root of the inputs."""
    width = 1 / math.sqrt(n_in)
    weight = (2 * torch.rand(n_networks, n_in, n_out, generator=generator) - 1) * width
    return nn.Parameter(weight), nn.Parameter((2 * torch.rand(n_networks, n_out, generator=generator) - 1) * width)
