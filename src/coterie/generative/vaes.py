"""Many small VAEs as one module: every weight has the networks as its first axis, every layer is one batched product.

Shapes: G networks, B rows each, D columns, H hidden units, L latent dimensions, S samples. Rows come as ``x_BD``, the
same for all networks, or as ``x_GBD``, to each its own.
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

    def bound(self, x: Tensor, noise: Tensor, networks: slice = slice(None)) -> Tensor:
        """(G, B) lower bounds of log p(x), differentiable."""

    def fresh(self, n_networks: int, generator: torch.Generator) -> "Densities":
        """Untrained ones of the same kind."""

    def parameters(self) -> Iterator[nn.Parameter]: ...
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: dict[str, Any]) -> Any: ...


@dataclass(frozen=True)
class VAEConfig:
    n_features: int
    hidden_size: int
    latent_size: int
    likelihood: str


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
        self.log_var_GD = nn.Parameter(torch.zeros(n_networks, D), requires_grad=config.likelihood == "gaussian")

    def fresh(self, n_networks: int, generator: torch.Generator) -> "VAEs":
        return VAEs(n_networks, self.config, generator)

    def encode(self, x: Tensor, networks: slice = slice(None)) -> tuple[Tensor, Tensor]:
        """Mean and log-variance of q(z | x), (G, B, L) each."""
        hidden_GBH = self._layer("enter", x, networks).relu()
        code_GBC = self._layer("encode", hidden_GBH, networks).to(self.log_var_GD.dtype)  # sums need all their digits
        mean_GBL, log_var_GBL = code_GBC.chunk(2, -1)
        return mean_GBL, log_var_GBL.clamp(-12, 6)

    def decode(self, z_GBL: Tensor, networks: slice = slice(None)) -> Tensor:
        """The likelihood's parameters, (G, B, D)."""
        hidden_GBH = self._layer("widen", z_GBL, networks).relu()
        return self._layer("leave", hidden_GBH, networks).to(self.log_var_GD.dtype)

    def bound(self, x: Tensor, noise: Tensor, networks: slice = slice(None)) -> Tensor:
        """The ELBO, (G, B). ``noise``: standard normal, (S, G, B, L) or of a shape that broadcasts to it."""
        mean_GBL, log_var_GBL = self.encode(x, networks)
        fit_GB = torch.stack([self._log_prob(x, mean_GBL, log_var_GBL, one, networks) for one in noise]).mean(0)
        return fit_GB - kl_from_standard_normal(mean_GBL, log_var_GBL)

    def importance_bound(self, x: Tensor, noise: Tensor, networks: slice = slice(None)) -> Tensor:
        """The importance-weighted bound, (G, B): never below the ELBO on average, and exact as S grows."""
        mean_GBL, log_var_GBL = self.encode(x, networks)
        log_weights = []
        for one in noise:
            z_GBL = mean_GBL + one * (log_var_GBL / 2).exp()
            log_prior_ratio = 0.5 * (one.square() + log_var_GBL - z_GBL.square()).sum(-1)
            log_weights.append(self._log_prob(x, mean_GBL, log_var_GBL, one, networks) + log_prior_ratio)
        return torch.stack(log_weights).logsumexp(0) - math.log(len(noise))

    def _log_prob(self, x: Tensor, mean_GBL: Tensor, log_var_GBL: Tensor, noise: Tensor, networks: slice) -> Tensor:
        output_GBD = self.decode(mean_GBL + noise * (log_var_GBL / 2).exp(), networks)
        return self.likelihood.log_prob(x, output_GBD, self.log_var_GD[networks, None])

    def _layer(self, name: str, x: Tensor, networks: slice) -> Tensor:
        weight_GIO, bias_GO = getattr(self, f"{name}_weight")[networks], getattr(self, f"{name}_bias")[networks]
        if x.dim() == 2:  # one wide product instead of G narrow ones
            n_networks, n_in, n_out = weight_GIO.shape
            wide_BGO = (x @ weight_GIO.transpose(0, 1).reshape(n_in, -1)).view(len(x), n_networks, n_out)
            return wide_BGO.transpose(0, 1) + bias_GO[:, None]
        return torch.baddbmm(bias_GO[:, None], x, weight_GIO)


def kl_from_standard_normal(mean_GBL: Tensor, log_var_GBL: Tensor) -> Tensor:
    """KL(q(z | x) || N(0, I)), (G, B)."""
    return 0.5 * (log_var_GBL.exp() + mean_GBL.square() - 1 - log_var_GBL).sum(-1)


def linear_weights(n_networks: int, n_in: int, n_out: int, generator: torch.Generator):
    """As torch.nn.Linear starts: uniform within one over the root of the inputs."""
    width = 1 / math.sqrt(n_in)
    weight = (2 * torch.rand(n_networks, n_in, n_out, generator=generator) - 1) * width
    return nn.Parameter(weight), nn.Parameter((2 * torch.rand(n_networks, n_out, generator=generator) - 1) * width)
