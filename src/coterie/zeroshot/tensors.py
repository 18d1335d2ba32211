"""Array operations of the networks by torch, for training and for other devices than the CPU."""

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from coterie.zeroshot.arrays import row_blocks


class Tensors:
    """The operations of :class:`coterie.zeroshot.arrays.Arrays` on tensors of one device, with gradients."""

    amax = staticmethod(torch.amax)
    clip = staticmethod(torch.clip)
    concatenate = staticmethod(torch.concatenate)
    detached = staticmethod(Tensor.detach)
    diagonal = staticmethod(torch.diagonal)
    log = staticmethod(torch.log)
    permute = staticmethod(torch.permute)
    sigmoid = staticmethod(torch.sigmoid)
    stack = staticmethod(torch.stack)

    def __init__(self, device: torch.device):
        self.device = device

    def array(self, values: np.ndarray) -> Tensor:
        return torch.from_numpy(values).to(self.device)

    @staticmethod
    def unchecked(x: Tensor) -> Tensor:
        return x.data

    @staticmethod
    def numpy(x: Tensor) -> np.ndarray:
        return x.detach().cpu().numpy()

    @staticmethod
    def linear(w: Any, x: Tensor) -> Tensor:
        return F.linear(x, w.weight, w.bias)

    @staticmethod
    def normed(w: Any, x: Tensor) -> Tensor:
        return F.layer_norm(x, w.weight.shape, w.weight, w.bias)

    @staticmethod
    def gelu(x: Tensor, approximate: str) -> Tensor:
        return F.gelu(x, approximate=approximate)

    @staticmethod
    def channels(pairs_BFNN, weight_PF, looker_BPN, other_BPN, mix_QP, direct_QF, parts: int) -> tuple[Tensor, ...]:
        return Channels.apply(pairs_BFNN, weight_PF, looker_BPN, other_BPN, mix_QP, direct_QF, parts)

    @staticmethod
    def attended(q_BHNE: Tensor, k_BHNE: Tensor, v_BHNE: Tensor, bias_BHNN: Tensor) -> Tensor:
        # written out: torch's fused attention falls back to something slower where the bias has a gradient
        scores = torch.baddbmm(bias_BHNN.flatten(0, 1), q_BHNE.flatten(0, 1), k_BHNE.flatten(0, 1).mT)
        return (scores.softmax(-1) @ v_BHNE.flatten(0, 1)).view(q_BHNE.shape)


class Channels(torch.autograd.Function):
    """``mix @ relu(weight @ pairs + looker + other) + direct @ pairs``, for a few rows of pairs at a time.

    Channels are computed again in the backward pass: that is cheaper than keeping (B, P, N, N) numbers in memory. The
    pairs themselves have no gradient.
    """

    @staticmethod
    def forward(ctx: Any, pairs_BFNN, weight_PF, looker_BPN, other_BPN, mix_QP, direct_QF, parts: int):
        ctx.save_for_backward(pairs_BFNN, weight_PF, looker_BPN, other_BPN, mix_QP, direct_QF)
        B, _, N, _ = pairs_BFNN.shape
        mixed = [pairs_BFNN.new_empty(B, len(mix_QP) // parts, N, N) for _ in range(parts)]
        for b, rows in row_blocks(B, N):
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
        for b, rows in row_blocks(B, N):
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


def _hidden(flat_FM: Tensor, weight_PF: Tensor, looker_PR: Tensor, other_PN: Tensor) -> Tensor:
    hidden_PM = weight_PF @ flat_FM
    hidden_PM.view(len(hidden_PM), -1, other_PN.shape[1]).add_(looker_PR[..., None]).add_(other_PN[:, None])
    return hidden_PM.relu_()
