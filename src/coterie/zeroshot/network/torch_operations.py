"""Array operations of the network by torch, for other devices than the CPU, and for training."""

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from coterie.zeroshot.features.pairs import Pairs, columns, tables


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
        return F.linear(x, w.weight, getattr(w, "bias", None))

    @staticmethod
    def normed(w: Any, x: Tensor) -> Tensor:
        return F.layer_norm(x, w.weight.shape, w.weight, w.bias)

    @staticmethod
    def gelu(x: Tensor, approximate: str) -> Tensor:
        return F.gelu(x, approximate=approximate)

    def pairs(self, given: Pairs) -> Pairs:
        numbers, merge, merges = given
        return Pairs(self.array(numbers), self.array(merge.astype(np.int32)), self.array(merges))

    @staticmethod
    def channels(pairs: Pairs, weight_PF, looker_BNP, other_BNP, mix_QP, direct_QF, parts: int) -> tuple[Tensor, ...]:
        def mapped(weight_PF: Tensor) -> Tensor:
            numbers_BPNN = torch.einsum(
                "pf,bfij->bpij", weight_PF[:, columns(weight_PF.shape[1])[0]], pairs.numbers_FNN
            )
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

    @staticmethod
    def attended(q_BHNE: Tensor, k_BHNE: Tensor, v_BHNE: Tensor, bias_BHNN: Tensor) -> Tensor:
        # written out: torch's fused attention falls back to something slower where the bias has a gradient
        scores = torch.baddbmm(bias_BHNN.flatten(0, 1), q_BHNE.flatten(0, 1), k_BHNE.flatten(0, 1).mT)
        return (scores.softmax(-1) @ v_BHNE.flatten(0, 1)).view(q_BHNE.shape)
