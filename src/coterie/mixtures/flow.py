"""The flow-speed transformer of Zimin et al. (2025): it maps every point to an estimate of its cluster centre.

Shapes: B data sets, N points, D dimensions (padded), E latent width, H heads.

    x  --normalise-->  --P-->  L steps of  z <- z + t A(z),  z <- z + t F(z)  --normalise-->  --decode-->  --rescale-->

A and F are attention and a feed-forward network, each after a LayerNorm, shared by all steps (or by every
``n_blocks``-th step). The total flow time T is a decreasing function of the signal-to-noise ratio (SNR). The regime
determines how T is divided into step sizes t.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Regime = Literal["uniform", "unit", "floor", "none"]


@dataclass(frozen=True)
class FlowConfig:
    """The size of the network."""

    dim: int = 2  # of the data, at most
    width: int = 64  # of a token
    n_heads: int = 4
    mlp_ratio: int = 4  # width of the feed-forward network in units of that of a token
    n_layers: int = 16
    n_blocks: int = 1  # with weights of their own, which the layers use in turn
    regime: Regime = "uniform"  # how the flow time is divided among the layers; see step_sizes
    max_flow: float = 16.0  # upper bound of the flow time
    snr_span: tuple[float, float] = (0.0, 20.0)  # the SNR in dB that the flow predictor maps to [0, 1]
    predictor_steps: int = 16  # sigmoids in the flow predictor
    snr_offset: bool = False  # whether to add a multiple of the SNR to all tokens


class FlowPredictor(nn.Module):
    """The flow time T = T_max (1 - f(x)), where x is the SNR mapped to [0, 1] and f an increasing sum of sigmoids.

    The form of f is from appendix C.4. Initially half of its mass is below the range, which keeps the flow short while
    the block is untrained.
    """

    def __init__(self, steps: int, max_flow: float, snr_span: tuple[float, float]):
        super().__init__()
        self.steps, self.max_flow, self.snr_span = steps, max_flow, snr_span
        low = steps // 2
        inside = torch.linspace(0.05, 0.95, steps - low)
        position = torch.cat([torch.full((low,), 0.02), (inside + 5 / steps) / (1 + 10 / steps)])
        self.position_logit = nn.Parameter(torch.logit(position))
        self.weight_logit = nn.Parameter(torch.zeros(steps))

    def forward(self, snr_db_B: Tensor) -> Tensor:
        low, high = self.snr_span
        x_B = (snr_db_B - low) / (high - low)
        position = (1 + 10 / self.steps) * self.position_logit.sigmoid() - 5 / self.steps
        steps_BS = torch.sigmoid(self.steps * (x_B[:, None] - position))
        return self.max_flow * (1 - (self.weight_logit.softmax(0) * steps_BS).sum(1))


def step_sizes(total_B: Tensor, n_layers: int, regime: Regime) -> Tensor:
    """Step sizes (L, B) for the flow times ``total_B``.

    "uniform" divides the flow time equally among the layers. "unit" takes steps of size 1 until it is used up, the last
    of which takes the rest. "floor" leaves the rest out, as the paper prints it: the identity if the flow time is below
    1. Its gradient is that of the flow time (straight-through). "none" takes a step of size 1 in every layer.
    """
    if regime == "uniform":
        return (total_B / n_layers).expand(n_layers, -1)
    if regime == "none":
        return torch.ones(n_layers, len(total_B), dtype=total_B.dtype, device=total_B.device)
    layer_L1 = torch.arange(n_layers, device=total_B.device)[:, None]
    if regime == "floor":
        total_B = total_B.floor() + (total_B - total_B.detach())
    return (total_B - layer_L1).clamp(0, 1)


class Block(nn.Module):
    """One step of the flow. Output projections are initialised to zero: the untrained network is the identity."""

    def __init__(self, width: int, n_heads: int, mlp_ratio: int):
        super().__init__()
        self.n_heads = n_heads
        self.norm_attention = nn.LayerNorm(width)
        self.norm_mlp = nn.LayerNorm(width)
        self.query_key_value = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)
        self.up = nn.Linear(width, mlp_ratio * width)
        self.down = nn.Linear(mlp_ratio * width, width)
        for last in (self.output, self.down):
            nn.init.zeros_(last.weight)
            nn.init.zeros_(last.bias)

    def forward(self, z_BNE: Tensor, t_B11: Tensor, bias_B11N: Tensor | None = None) -> Tensor:
        z_BNE = z_BNE + t_B11 * self.attention(self.norm_attention(z_BNE), bias_B11N)
        return z_BNE + t_B11 * self.down(F.gelu(self.up(self.norm_mlp(z_BNE)), approximate="tanh"))

    def attention(self, z_BNE: Tensor, bias_B11N: Tensor | None) -> Tensor:
        B, N, E = z_BNE.shape
        q, k, v = self.query_key_value(z_BNE).view(B, N, 3, self.n_heads, E // self.n_heads).permute(2, 0, 3, 1, 4)
        mixed_BHNE = F.scaled_dot_product_attention(q, k, v, attn_mask=bias_B11N)
        return self.output(mixed_BHNE.transpose(1, 2).reshape(B, N, E))


class MeasureFlow(nn.Module):
    """The network. It commutes with shifts, scalings and permutations of the points, and is the identity at T = 0."""

    encoder_DE: Tensor

    def __init__(self, config: FlowConfig):
        super().__init__()
        self.config = config
        self.flow_time = FlowPredictor(config.predictor_steps, config.max_flow, config.snr_span)
        self.blocks = nn.ModuleList(
            Block(config.width, config.n_heads, config.mlp_ratio) for _ in range(config.n_blocks)
        )
        # The encoder stays fixed: a rotation of the latent space can be absorbed by the block. Its rows have mean zero,
        # so that LayerNorm's centring takes nothing away from the points.
        gaussian_ED = torch.randn(config.width, config.dim)
        encoder_ED = torch.linalg.qr(gaussian_ED - gaussian_ED.mean(0)).Q
        self.register_buffer("encoder_DE", encoder_ED.T.contiguous())
        # Without a shift LayerNorm would see a point's direction only; the output's normalisation removes it.
        self.offset_E = nn.Parameter(2 * F.normalize(torch.randn(config.width), dim=0))
        self.snr_offset_E = nn.Parameter(torch.zeros(config.width)) if config.snr_offset else None
        self.decoder_DE = nn.Parameter(0.1 * torch.randn(config.dim, config.width) / math.sqrt(config.width))

    def forward(
        self,
        x_BND: Tensor,
        snr_db_B: Tensor,
        *,
        dims_B: Tensor | None = None,
        weights_BN: Tensor | None = None,
        n_layers: int | None = None,
        regime: Regime | None = None,
        flow_time_B: Tensor | None = None,
        on_layer: Callable[[Tensor], None] | None = None,
    ) -> Tensor:
        """Estimated centres (B, N, D), one per point.

        ``dims_B`` is the number of coordinates in use if the others are padding. ``weights_BN`` are the masses of the
        points: a point of weight 2 acts as two points. ``n_layers``, ``regime`` and ``flow_time_B`` override the values
        used in training. ``on_layer`` is called with the decoded tokens before the
        first layer and after every layer.
        """
        n_layers = n_layers or self.config.n_layers
        if dims_B is None:
            dims_B = torch.full((len(x_BND),), x_BND.shape[-1], device=x_BND.device)
        mean_B1D, std_B11 = _location_and_scale(x_BND, dims_B, weights_BN)
        # a logarithm of its weight added to all scores of a point counts it that many times
        bias_B11N = None if weights_BN is None else weights_BN.log()[:, None, None]
        z_BNE = (x_BND - mean_B1D) / std_B11 @ self.encoder_DE + self.offset_E
        if self.snr_offset_E is not None:
            z_BNE = z_BNE + ((snr_db_B - 9) / 6)[:, None, None] * self.snr_offset_E
        total_B = self.flow_time(snr_db_B) if flow_time_B is None else flow_time_B
        t_LB = step_sizes(total_B, n_layers, regime or self.config.regime)

        def decode(z: Tensor) -> Tensor:
            return self._decode(z, dims_B, weights_BN) * std_B11 + mean_B1D

        if on_layer is not None:
            on_layer(decode(z_BNE))
        # whole steps of which the flow time is used up do nothing; at their border the gradient of "floor" passes
        whole_steps = (regime or self.config.regime) in ("unit", "floor")
        reached = int(total_B.max()) + 1 if whole_steps else n_layers
        for layer in range(n_layers):
            if layer < reached:
                z_BNE = self.blocks[layer % len(self.blocks)](z_BNE, t_LB[layer][:, None, None], bias_B11N)
            if on_layer is not None:
                on_layer(decode(z_BNE))
        return decode(z_BNE)

    def _decode(self, z_BNE: Tensor, dims_B: Tensor, weights_BN: Tensor | None) -> Tensor:
        mean_B1E, std_B11 = _location_and_scale(z_BNE, dims_B, weights_BN)
        z_BNE = (z_BNE - mean_B1E) / std_B11
        main_BND = z_BNE @ self.encoder_DE.T
        rest_BNE = z_BNE - main_BND @ self.encoder_DE
        used_B1D = torch.arange(self.config.dim, device=z_BNE.device) < dims_B[:, None, None]
        return (main_BND + rest_BNE @ self.decoder_DE.T) * used_B1D


def _location_and_scale(x_BND: Tensor, dims_B: Tensor, weights_BN: Tensor | None) -> tuple[Tensor, Tensor]:
    if weights_BN is None:
        mean_B1D = x_BND.mean(1, keepdim=True)
        var_B = (x_BND - mean_B1D).square().sum(-1).mean(1)
    else:
        share_BN = weights_BN / weights_BN.sum(1, keepdim=True)
        mean_B1D = share_BN[:, None] @ x_BND
        var_B = (share_BN * (x_BND - mean_B1D).square().sum(-1)).sum(1)
    var_B11 = (var_B / dims_B)[:, None, None]
    return mean_B1D, var_B11.clamp_min(torch.finfo(x_BND.dtype).tiny).sqrt()


def build(config: dict[str, Any]) -> MeasureFlow:
    """A network from the configuration on its card."""
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in config.items()
    }
    return MeasureFlow(FlowConfig(**values))
