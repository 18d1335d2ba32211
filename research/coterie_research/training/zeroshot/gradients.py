"""Channels of pairs on the CPU by compiled functions, with gradients: operations with which networks are trained."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from coterie.threads import kernel
from coterie.zeroshot.features.pair_kernels import LANES, along_merges
from coterie.zeroshot.features.pairs import Pairs, columns
from coterie.zeroshot.network.numpy_operations import Arrays, HiddenChannels, row_blocks
from coterie.zeroshot.network.torch_operations import Tensors

_scatter_lanes = along_merges(to_tables=True)


class TrainedTensors(Tensors):
    """Operations on tensors; on the CPU, pairs stay arrays, which compiled functions read."""

    def pairs(self, given: Pairs) -> Pairs:
        return given if self.device.type == "cpu" else super().pairs(given)

    def channels(self, pairs: Pairs, weight_PF, looker_BNP, other_BNP, mix_QP, direct_QF, parts: int):  # type: ignore[override]
        how = Channels.apply if self.device.type == "cpu" else Tensors.channels
        return how(pairs, weight_PF, looker_BNP, other_BNP, mix_QP, direct_QF, parts)


class Channels(torch.autograd.Function):
    """Channels by ``network.numpy_operations.Arrays``, and their gradients; the pairs themselves have none.

    Channels are computed again in the backward pass: that is cheaper than keeping (B, N, N, P) numbers in memory. Until
    then the pairs must not change. They are computed in single precision where others are in bfloat16.
    """

    @staticmethod
    @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
    def forward(ctx: Any, pairs: Pairs, weight_PF, looker_BNP, other_BNP, mix_QP, direct_QF, parts: int):
        ctx.pairs = pairs
        ctx.save_for_backward(weight_PF, looker_BNP, other_BNP, mix_QP, direct_QF)
        weight, looker, other, mix, direct = map(_numpy, (weight_PF, looker_BNP, other_BNP, mix_QP, direct_QF))
        return tuple(map(torch.from_numpy, Arrays.channels(pairs, weight, looker, other, mix, direct, parts)))

    @staticmethod
    @torch.amp.custom_bwd(device_type="cpu")
    def backward(ctx: Any, *grads):
        pairs: Pairs = ctx.pairs
        weight_PF, looker_BNP, other_BNP, mix_QP, direct_QF = (_numpy(each) for each in ctx.saved_tensors)
        hidden = HiddenChannels(pairs, weight_PF, looker_BNP, other_BNP)
        B, T, N, _ = pairs.merge_TNN.shape
        P, Q, M = len(weight_PF), len(mix_QP), pairs.merges_TGM.shape[-1]
        of_mix_QP = np.zeros_like(mix_QP)
        of_weight, of_direct = (_FeatureGradient(pairs, rows, mix_QP.dtype) for rows in (P, Q))
        of_looker_BNP, of_other_BNP = np.zeros_like(looker_BNP), np.zeros_like(other_BNP)
        of_table_TMP, of_table_QTM = np.empty((T, M, P), mix_QP.dtype), np.empty((Q, T, M), mix_QP.dtype)
        grads_BHNN = [_numpy(grad) for grad in grads]
        for b in range(B):
            of_table_TMP[:] = of_table_QTM[:] = 0
            merge_TNN = pairs.merge_TNN[b]
            for _, rows in row_blocks(1, N):
                hidden_MP, numbers_FM = hidden.of(b, rows), hidden.numbers(b, rows)
                grad_QM = np.concatenate([grad[b, :, rows].reshape(grad.shape[1], -1) for grad in grads_BHNN])
                of_mix_QP += grad_QM @ hidden_MP
                grad_MP = grad_QM.T @ mix_QP
                shape_RNP = (-1, N, P)
                scatter_channels(
                    merge_TNN,
                    rows.start,
                    hidden_MP.reshape(shape_RNP),
                    grad_MP.reshape(shape_RNP),
                    of_looker_BNP[b, rows],
                    of_other_BNP[b],
                    of_table_TMP,
                )
                of_weight.numbers += grad_MP.T @ numbers_FM.T
                if direct_QF is not None:
                    of_direct.numbers += grad_QM @ numbers_FM.T
                    for grad_M, of_table_TM in zip(grad_QM, of_table_QTM):
                        scatter(merge_TNN, rows.start, grad_M.reshape(-1, N), of_table_TM)
            of_weight.merges += np.einsum("tgm,tmp->ptg", pairs.merges_TGM[b], of_table_TMP)
            if direct_QF is not None:
                of_direct.merges += np.einsum("tgm,qtm->qtg", pairs.merges_TGM[b], of_table_QTM)
        found = [of_weight.whole(), of_looker_BNP, of_other_BNP, of_mix_QP]
        direct = None if direct_QF is None else torch.from_numpy(of_direct.whole())
        return None, *(torch.from_numpy(each) for each in found), direct, None


class _FeatureGradient:
    """The gradient of weights of features: of numbers and of merges apart, then in the order of the weights."""

    def __init__(self, pairs: Pairs, n_rows: int, dtype: Any):
        n_numbers, (n_trees, n_features) = pairs.numbers_FNN.shape[1], pairs.merges_TGM.shape[1:3]
        self.numbers = np.zeros((n_rows, n_numbers), dtype)
        self.merges = np.zeros((n_rows, n_trees, n_features), dtype)

    def whole(self) -> np.ndarray:
        n_features = self.numbers.shape[1] + self.merges[0].size
        numbers, merges = columns(n_features)
        whole = np.empty((len(self.numbers), n_features), self.numbers.dtype)
        whole[:, numbers], whole[:, merges] = self.numbers, self.merges
        return whole


@kernel()
def scatter_channels(merge_TNN, first, hidden_RNP, grad_RNP, looker_RP, other_NP, table_TMP):
    """Add the gradient of every pair to those of its two points and to its row of each table.

    ``grad_RNP`` becomes zero where ``hidden_RNP`` is.
    """
    T, N, _ = merge_TNN.shape
    R, _, P = grad_RNP.shape
    whole = P - P % LANES
    for r in range(R):
        for j in range(N):
            for p in range(P):
                grad_RNP[r, j, p] = grad_RNP[r, j, p] if hidden_RNP[r, j, p] > 0 else 0
        for j in range(N):
            for p in range(P):
                looker_RP[r, p] += grad_RNP[r, j, p]
        for j in range(N):
            for p in range(P):
                other_NP[j, p] += grad_RNP[r, j, p]
        for j in range(N):
            for p in range(0, whole if T else 0, LANES):
                _scatter_lanes(merge_TNN, first + r, j, table_TMP, p, grad_RNP, (r * N + j) * P + p)
            for p in range(whole, P):
                for t in range(T):
                    table_TMP[t, merge_TNN[t, first + r, j], p] += grad_RNP[r, j, p]


@kernel()
def scatter(merge_TNN, first, grad_RN, table_TM):
    """Add the number of every pair to its place in each table."""
    T, N, _ = merge_TNN.shape
    for r in range(len(grad_RN)):
        for j in range(N):
            for t in range(T):
                table_TM[t, merge_TNN[t, first + r, j]] += grad_RN[r, j]


def _numpy(x: Tensor | None) -> Any:
    return None if x is None else x.detach().numpy()
