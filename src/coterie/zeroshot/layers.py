"""Building blocks of the zero-shot networks: channels of pairs, and attention that they steer.

Shapes: B data sets, N points, E width, H heads, F features of a pair, P channels of a pair, Q outputs for a pair.
"""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

PAIRS_AT_ONCE = 8192  # pairs whose channels are computed together, so that they stay in the cache


class _Channels(torch.autograd.Function):
    """``mix @ relu(weight @ pairs + looker + other) + direct @ pairs``, for a few rows of pairs at a time.

    Channels are computed again in the backward pass: that is cheaper than keeping (B, P, N, N) numbers in memory. The
    pairs themselves have no gradient.
    """

    @staticmethod
    def forward(ctx: Any, pairs_BFNN, weight_PF, looker_BPN, other_BPN, mix_QP, direct_QF, parts: int):
        ctx.save_for_backward(pairs_BFNN, weight_PF, looker_BPN, other_BPN, mix_QP, direct_QF)
        B, _, N, _ = pairs_BFNN.shape
        mixed = [pairs_BFNN.new_empty(B, len(mix_QP) // parts, N, N) for _ in range(parts)]
        for b, rows in _row_blocks(B, N):
            flat_FM = pairs_BFNN[b, :, rows].flatten(1)
            hidden_PM = _hidden(flat_FM, weight_PF, looker_BPN[b, :, rows], other_BPN[b])
            out_QM = mix_QP @ hidden_PM
            if direct_QF is not None:
                out_QM.addmm_(direct_QF, flat_FM)
            for part_BHNN, out_HM in zip(mixed, out_QM.chunk(parts)):
                part_BHNN[b, :, rows] = out_HM.view(len(out_HM), -1, N)
        return tuple(mixed)

    @staticmethod
    def backward(ctx: Any, *grads):
        pairs_BFNN, weight_PF, looker_BPN, other_BPN, mix_QP, direct_QF = ctx.saved_tensors
        B, _, N, _ = pairs_BFNN.shape
        grad_FP, grad_PQ = torch.zeros_like(weight_PF.T), torch.zeros_like(mix_QP.T)
        grad_FQ = None if direct_QF is None else torch.zeros_like(direct_QF.T)
        grad_looker_BPN, grad_other_BPN = torch.empty_like(looker_BPN), torch.zeros_like(other_BPN)
        for b, rows in _row_blocks(B, N):
            flat_FM = pairs_BFNN[b, :, rows].flatten(1)
            hidden_PM = _hidden(flat_FM, weight_PF, looker_BPN[b, :, rows], other_BPN[b])
            grad_QM = torch.cat([grad_BHNN[b, :, rows].flatten(1) for grad_BHNN in grads])
            grad_PQ.addmm_(hidden_PM, grad_QM.T)
            grad_PM = torch.ops.aten.threshold_backward(mix_QP.T @ grad_QM, hidden_PM, 0.0)
            grad_FP.addmm_(flat_FM, grad_PM.T)
            if grad_FQ is not None:
                grad_FQ.addmm_(flat_FM, grad_QM.T)
            grad_PRN = grad_PM.view(len(grad_PM), -1, N)
            grad_looker_BPN[b, :, rows] = grad_PRN.sum(-1)
            grad_other_BPN[b] += grad_PRN.sum(1)
        direct = None if grad_FQ is None else grad_FQ.T
        return None, grad_FP.T, grad_looker_BPN, grad_other_BPN, grad_PQ.T, direct, None


def _row_blocks(n_sets: int, n_points: int):
    step = max(1, PAIRS_AT_ONCE // n_points)
    for b in range(n_sets):
        for first in range(0, n_points, step):
            yield b, slice(first, first + step)


def _hidden(flat_FM: Tensor, weight_PF: Tensor, looker_PR: Tensor, other_PN: Tensor) -> Tensor:
    hidden_PM = weight_PF @ flat_FM
    hidden_PM.view(len(hidden_PM), -1, other_PN.shape[1]).add_(looker_PR[..., None]).add_(other_PN[:, None])
    return hidden_PM.relu_()


class PairChannels(nn.Module):
    """Channels of every pair from its features, gated by its two tokens, then a linear map."""

    def __init__(self, width: int, channels: int, features: int):
        super().__init__()
        self.pair = nn.Linear(features, channels)
        self.looker = nn.Linear(width, channels, bias=False)
        self.other = nn.Linear(width, channels, bias=False)

    def forward(
        self,
        pairs_BFNN: Tensor,
        tokens_BNE: Tensor,
        weight_QP: Tensor,
        direct_QF: Tensor | None = None,
        parts: int = 1,
    ) -> tuple[Tensor, ...]:
        """(B, Q, N, N) in ``parts`` of equal Q; ``direct_QF`` maps features to the result without channels between."""
        looker_BPN = (self.looker(tokens_BNE) + self.pair.bias).mT
        other_BPN = self.other(tokens_BNE).mT
        return _Channels.apply(pairs_BFNN, self.pair.weight, looker_BPN, other_BPN, weight_QP, direct_QF, parts)


class Layer(nn.Module):
    """Attention with a given bias for every head and pair, then a feed-forward net; the identity before training."""

    def __init__(self, width: int, n_heads: int, mlp_ratio: int):
        super().__init__()
        self.n_heads = n_heads
        self.norm_attention = nn.LayerNorm(width)
        self.query_key_value = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)
        self.norm_mlp = nn.LayerNorm(width)
        self.up = nn.Linear(width, mlp_ratio * width)
        self.down = nn.Linear(mlp_ratio * width, width)
        for last in (self.output, self.down):
            nn.init.zeros_(last.weight)
            nn.init.zeros_(last.bias)

    def forward(self, z_BNE: Tensor, bias_BHNN: Tensor) -> Tensor:
        z_BNE = z_BNE + self.attention(self.norm_attention(z_BNE), bias_BHNN)
        return z_BNE + self.down(F.gelu(self.up(self.norm_mlp(z_BNE)), approximate="tanh"))

    def attention(self, z_BNE: Tensor, bias_BHNN: Tensor) -> Tensor:
        B, N, E = z_BNE.shape
        q, k, v = self.query_key_value(z_BNE).view(B, N, 3, self.n_heads, E // self.n_heads).permute(2, 0, 3, 1, 4)
        q = q * (sharpness(N) / math.sqrt(q.shape[-1]))
        # written out: torch's fused attention falls back to something slower where the bias has a gradient
        scores = torch.baddbmm(bias_BHNN.flatten(0, 1), q.flatten(0, 1), k.flatten(0, 1).mT)
        mixed_BHNE = (scores.softmax(-1) @ v.flatten(0, 1)).view(B, self.n_heads, N, -1)
        return self.output(mixed_BHNE.transpose(1, 2).reshape(B, N, E))


def sharpness(n_points: int) -> float:
    """Factor on attention scores, so that attention over many points does not dilute."""
    return math.log(n_points) / math.log(256)


class Stretch(nn.Module):
    """A few layers whose attention is steered by one reading of the pairs, made from the tokens as they are then."""

    def __init__(self, width: int, n_heads: int, n_layers: int, mlp_ratio: int, channels: int, features: int):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.channels = PairChannels(width, channels, features)
        self.steering = nn.Linear(channels, n_layers * n_heads, bias=False)
        self.layers = nn.ModuleList(Layer(width, n_heads, mlp_ratio) for _ in range(n_layers))

    def forward(self, z_BNE: Tensor, pairs_BFNN: Tensor) -> Tensor:
        weight_SP = self.steering.weight * sharpness(z_BNE.shape[1])
        biases = self.channels(pairs_BFNN, self.norm(z_BNE), weight_SP, parts=len(self.layers))
        for layer, bias_BHNN in zip(self.layers, biases):
            z_BNE = layer(z_BNE, bias_BHNN)
        return z_BNE
