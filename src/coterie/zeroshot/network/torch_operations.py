"""Array operations of the networks by torch, for training and for other devices than the CPU."""

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from coterie.zeroshot.features.pairs import Pairs, columns, tables
from coterie.zeroshot.network.numpy_operations import Arrays, HiddenChannels, row_blocks


class Tensors:
    """The operations of ``network.numpy_operations.Arrays`` on tensors of one device, with gradients."""

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

    def pairs(self, given: Pairs) -> Pairs:
        """On the CPU as arrays, which compiled functions read."""
        if self.device.type == "cpu":
            return given
        numbers, merge, merges = given
        return Pairs(self.array(numbers), self.array(merge.astype(np.int32)), self.array(merges))

    def channels(self, pairs: Pairs, weight_PF, looker_BNP, other_BNP, mix_QP, direct_QF, parts: int):
        how = Channels.apply if self.device.type == "cpu" else plain_channels
        return how(pairs, weight_PF, looker_BNP, other_BNP, mix_QP, direct_QF, parts)

    @staticmethod
    def attended(q_BHNE: Tensor, k_BHNE: Tensor, v_BHNE: Tensor, bias_BHNN: Tensor) -> Tensor:
        # written out: torch's fused attention falls back to something slower where the bias has a gradient
        scores = torch.baddbmm(bias_BHNN.flatten(0, 1), q_BHNE.flatten(0, 1), k_BHNE.flatten(0, 1).mT)
        return (scores.softmax(-1) @ v_BHNE.flatten(0, 1)).view(q_BHNE.shape)


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
        from coterie.zeroshot.features.pair_kernels import scatter, scatter_channels

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


def plain_channels(pairs: Pairs, weight_PF, looker_BNP, other_BNP, mix_QP, direct_QF, parts: int) -> tuple[Tensor, ...]:
    """The same by operations of torch alone, for any device."""

    def mapped(weight_PF: Tensor) -> Tensor:
        numbers_BPNN = torch.einsum("pf,bfij->bpij", weight_PF[:, columns(weight_PF.shape[1])[0]], pairs.numbers_FNN)
        table_BTPM = tables(pairs.merges_TGM, weight_PF).mT
        sets = []
        for whole_PNN, table_TPM, merge_TNN in zip(numbers_BPNN, table_BTPM, pairs.merge_TNN):
            for table_PM, merge_NN in zip(table_TPM, merge_TNN):
                whole_PNN = whole_PNN + table_PM[:, merge_NN]
            sets.append(whole_PNN)
        return torch.stack(sets)

    hidden_BPNN = (mapped(weight_PF) + looker_BNP.mT[..., None] + other_BNP.mT[:, :, None]).relu()
    mixed_BQNN = torch.einsum("qp,bpij->bqij", mix_QP, hidden_BPNN)
    if direct_QF is not None:
        mixed_BQNN = mixed_BQNN + mapped(direct_QF)
    return mixed_BQNN.chunk(parts, 1)


def _numpy(x: Tensor | None) -> Any:
    return None if x is None else x.detach().numpy()
