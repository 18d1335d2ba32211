"""Many small normalising flows as one module, with an exact likelihood instead of the VAEs' bound.

A flow scales and shifts every column and then applies affine couplings: one half of the columns stays unchanged and
determines how the other half is scaled and shifted; a fixed permutation before every coupling chooses the halves. The
logarithm of its Jacobian is the sum of the logarithms of the scales.

Shapes as in ``vaes``: G flows, B rows each, D columns, H hidden units.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from coterie.generative.vaes import linear_weights

_MOST_LOG_SCALE = 2.0  # of one coupling: keeps an untrained tail from exploding


@dataclass(frozen=True)
class FlowConfig:
    n_features: int  # at least 2
    hidden_size: int
    n_couplings: int = 6


class Flows(nn.Module):
    """G flows from data to a standard normal distribution."""

    orders_CD: Tensor
    noise_size = 0  # nothing is sampled: the "bound" is the log-likelihood itself

    def __init__(self, n_networks: int, config: FlowConfig, generator: torch.Generator):
        super().__init__()
        self.config = config
        D, H, C = config.n_features, config.hidden_size, config.n_couplings
        self.n_kept = D // 2
        n_moved = D - self.n_kept
        self.shift_GD = nn.Parameter(torch.zeros(n_networks, D))
        self.log_scale_GD = nn.Parameter(torch.zeros(n_networks, D))
        for c in range(C):
            for name, n_in, n_out in (("enter", self.n_kept, H), ("leave", H, 2 * n_moved)):
                weight, bias = linear_weights(n_networks, n_in, n_out, generator)
                if name == "leave":  # begins as the identity
                    weight.data.zero_()
                    bias.data.zero_()
                self.register_parameter(f"{name}{c}_weight", weight)
                self.register_parameter(f"{name}{c}_bias", bias)
        # the same for all flows and runs of a size: a resumed run needs no other record of them
        fixed = torch.Generator().manual_seed(D)
        orders = [torch.randperm(D, generator=fixed) for _ in range(C)]
        self.register_buffer("orders_CD", torch.stack(orders), persistent=False)

    def fresh(self, n_networks: int, generator: torch.Generator) -> "Flows":
        return Flows(n_networks, self.config, generator)

    def bound(self, x: Tensor, noise: Tensor, networks: slice = slice(None), *, dropout=None) -> Tensor:
        """log p(x), (G, B), exactly; ``noise`` and ``dropout`` are not used."""
        z_GBD, log_det_GB = self.forward(x, networks)
        return log_det_GB - 0.5 * (z_GBD.square() + math.log(2 * math.pi)).sum(-1)

    def forward(self, x: Tensor, networks: slice = slice(None)) -> tuple[Tensor, Tensor]:
        """Where rows are sent, (G, B, D), and the log of the Jacobian there, (G, B)."""
        log_scale_GD = self.log_scale_GD[networks]
        z_GBD = (x + self.shift_GD[networks, None]) * log_scale_GD[:, None].exp()
        log_det_GB = log_scale_GD.sum(1, keepdim=True).expand(z_GBD.shape[:2])
        for c, order in enumerate(self.orders_CD):
            kept, moved = z_GBD[..., order].split([self.n_kept, len(order) - self.n_kept], -1)
            log_scale, shift = self._coupling(c, kept, networks)
            z_GBD = torch.cat([kept, moved * log_scale.exp() + shift], -1)
            log_det_GB = log_det_GB + log_scale.sum(-1)
        return z_GBD, log_det_GB

    def codes(self, x: Tensor, networks: slice = slice(None)) -> Tensor:
        return self.forward(x, networks)[0]

    def _coupling(self, c: int, kept_GBI: Tensor, networks: slice) -> tuple[Tensor, Tensor]:
        """Log-scale and shift of the other half."""
        hidden_GBH = self._layer(f"enter{c}", kept_GBI, networks).relu()
        log_scale, shift = self._layer(f"leave{c}", hidden_GBH, networks).to(self.shift_GD.dtype).chunk(2, -1)
        return _MOST_LOG_SCALE * torch.tanh(log_scale / _MOST_LOG_SCALE), shift

    def _layer(self, name: str, x_GBI: Tensor, networks: slice) -> Tensor:
        weight_GIO, bias_GO = getattr(self, f"{name}_weight")[networks], getattr(self, f"{name}_bias")[networks]
        return torch.baddbmm(bias_GO[:, None], x_GBI, weight_GIO)
