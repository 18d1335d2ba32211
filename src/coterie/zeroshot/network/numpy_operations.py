"""Array operations of the network by numpy, so that clustering on the CPU does not import torch.

The first ``ZeroShotClusterer().fit`` of a process, on the wine data, takes 2.3 CPU seconds by these operations and 4.2
by those of torch; 1,000 rows of 8 columns take 1.4 either way once all is loaded. This file is the whole twin:
:class:`coterie.zeroshot.network.torch_operations.Tensors` has the same operations, for training and other devices, and
the network is written once, as functions of either (``xp``) and of weights, which are read as attributes.

Shapes: B data sets, N points, E width, H heads, F features of a pair, P channels of a pair, Q outputs for a pair.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from coterie import threads
from coterie.zeroshot.features.pairs import Pairs, columns, gather, gather_channels, tables

PAIRS_AT_ONCE = 8192  # pairs whose channels are computed together, so that they stay in the cache
ROWS_AT_ONCE = 64  # rows of scores, for the same reason


class Weights:
    """Weights by their dotted names as nested attributes, like those of a torch module; numbers make a list."""

    def __init__(self, arrays: Mapping[str, np.ndarray]):
        parts: dict[str, dict[str, np.ndarray]] = {}
        for name, array in arrays.items():
            first, _, rest = name.partition(".")
            parts.setdefault(first, {})[rest] = array
        for first, inside in parts.items():
            setattr(self, first, inside[""] if "" in inside else _nested(inside))


def _nested(arrays: Mapping[str, np.ndarray]) -> Any:
    inside = vars(Weights(arrays))
    if not all(name.isdigit() for name in inside):
        return Weights(arrays)
    numbered = {int(name): part for name, part in sorted(inside.items(), key=lambda item: int(item[0]))}
    return list(numbered.values()) if list(numbered) == list(range(len(numbered))) else numbered


def row_blocks(n_sets: int, n_points: int) -> Iterator[tuple[int, slice]]:
    """Every set with a few of its rows at a time."""
    step = max(1, PAIRS_AT_ONCE // n_points)
    for b in range(n_sets):
        for first in range(0, n_points, step):
            yield b, slice(first, min(first + step, n_points))


def _run(task: Callable[[int], None], n_tasks: int) -> None:
    """Blocks in several threads, in each of which BLAS has one."""
    n_threads = threads.count()
    if n_threads == 1 or n_tasks == 1:
        threads.run(task, n_tasks, 1)
        return
    with threads.blas_threads(1):
        threads.run(task, n_tasks, n_threads)


class HiddenChannels:
    """``relu(weight @ features + looker + other)`` of pairs, for a few rows of a set at a time."""

    def __init__(self, pairs: Pairs, weight_PF: np.ndarray, looker_BNP: np.ndarray, other_BNP: np.ndarray):
        self.n_sets, _, self.n_points, _ = pairs.numbers_FNN.shape
        self._pairs, self._looker_BNP, self._other_BNP = pairs, looker_BNP, other_BNP
        self._weight_FP = np.ascontiguousarray(weight_PF[:, columns(weight_PF.shape[1])[0]].T)
        self._table_BTMP = tables(pairs.merges_TGM, weight_PF)

    def numbers(self, b: int, rows: slice) -> np.ndarray:
        """(F, M) the features of these pairs that are numbers of their own."""
        numbers_FNN = self._pairs.numbers_FNN[b]
        places = slice(rows.start * self.n_points, rows.stop * self.n_points)
        return numbers_FNN.reshape(len(numbers_FNN), -1)[:, places]

    def of(self, b: int, rows: slice) -> np.ndarray:
        """(M, P) channels."""
        hidden_MP = self.numbers(b, rows).T @ self._weight_FP
        gather_channels(
            self._pairs.merge_TNN[b],
            rows.start,
            self._table_BTMP[b],
            self._looker_BNP[b, rows],
            self._other_BNP[b],
            hidden_MP.reshape(-1, self.n_points, hidden_MP.shape[1]),
        )
        return hidden_MP


class Arrays:
    """Operations on numpy arrays in single precision."""

    amax = staticmethod(np.amax)
    clip = staticmethod(np.clip)
    diagonal = staticmethod(np.diagonal)
    log = staticmethod(np.log)
    permute = staticmethod(np.transpose)
    stack = staticmethod(np.stack)

    @staticmethod
    def array(values: np.ndarray) -> np.ndarray:
        """Values from outside, where these operations compute."""
        return values

    @staticmethod
    def detached(x: np.ndarray) -> np.ndarray:
        """The same memory, without gradients."""
        return x

    @staticmethod
    def numpy(x: np.ndarray) -> np.ndarray:
        return x

    @staticmethod
    def concatenate(parts: list[np.ndarray], axis: int) -> np.ndarray:
        return np.concatenate(parts, axis, dtype=np.float32)

    @staticmethod
    def linear(w: Any, x: np.ndarray) -> np.ndarray:
        y = x @ w.weight.T
        bias = getattr(w, "bias", None)
        return y if bias is None else np.add(y, bias, out=y)

    @staticmethod
    def normed(w: Any, x: np.ndarray) -> np.ndarray:
        """Layer normalisation."""
        x = x - x.mean(-1, keepdims=True)
        x /= np.sqrt(np.square(x).mean(-1, keepdims=True) + np.float32(1e-5))
        x *= w.weight
        return np.add(x, w.bias, out=x)

    @staticmethod
    def gelu(x: np.ndarray, approximate: str) -> np.ndarray:
        from scipy.special import erf

        if approximate == "none":
            return 0.5 * x * (1 + erf(x / math.sqrt(2)))
        bent = x * x
        bent *= 0.044715
        bent += 1
        bent *= x
        bent *= math.sqrt(2 / math.pi)
        np.tanh(bent, out=bent)
        bent += 1
        bent *= x
        bent *= 0.5
        return bent

    @staticmethod
    def sigmoid(x: np.ndarray) -> np.ndarray:
        p = np.maximum(x, -80)  # whose exponential is a number in single precision
        np.negative(p, out=p)
        np.exp(p, out=p)
        p += 1
        return np.reciprocal(p, out=p)

    @staticmethod
    def pairs(given: Pairs) -> Pairs:
        """Features of pairs, where these operations compute."""
        return given

    @staticmethod
    def channels(pairs: Pairs, weight_PF, looker_BNP, other_BNP, mix_QP, direct_QF, parts: int) -> list[np.ndarray]:
        """``mix @ relu(weight @ features + looker + other) + direct @ features``, in parts (B, Q / parts, N, N)."""
        hidden = HiddenChannels(pairs, weight_PF, looker_BNP, other_BNP)
        B, N, Q = hidden.n_sets, hidden.n_points, len(mix_QP)
        mixed_BQNN = np.empty((B, Q, N, N), dtype=mix_QP.dtype)
        if direct_QF is not None:
            by_number = direct_QF[:, columns(direct_QF.shape[1])[0]]
            direct_BTMQ = tables(pairs.merges_TGM, direct_QF)
        blocks = list(row_blocks(B, N))

        def task(number: int) -> None:
            b, rows = blocks[number]
            out_QM = mix_QP @ hidden.of(b, rows).T
            if direct_QF is not None:
                out_QM += by_number @ hidden.numbers(b, rows)
                for q, out_M in enumerate(out_QM):
                    table_TM = np.ascontiguousarray(direct_BTMQ[b, ..., q])
                    gather(pairs.merge_TNN[b], rows.start, table_TM, out_M.reshape(-1, N))
            mixed_BQNN[b].reshape(Q, N * N)[:, rows.start * N : rows.stop * N] = out_QM

        _run(task, len(blocks))
        return np.split(mixed_BQNN, parts, axis=1)

    @staticmethod
    def attended(q_BHNE, k_BHNE, v_BHNE, bias_BHNN) -> np.ndarray:
        """``softmax(q k' + bias) v`` for every head. The bias is overwritten."""
        B, H, N, E = q_BHNE.shape
        mixed_BHNE = np.empty((B, H, N, E), dtype=np.float32)
        sets = [(b, h) for b in range(B) for h in range(H)]

        def task(number: int) -> None:
            b, h = sets[number]
            keys_EN = np.ascontiguousarray(k_BHNE[b, h].T)
            values_NE = np.ones((N, E + 1), dtype=np.float32)  # the sum of the weights is one more value
            values_NE[:, :E] = v_BHNE[b, h]
            for first in range(0, N, ROWS_AT_ONCE):
                rows = slice(first, first + ROWS_AT_ONCE)
                scores_RN = bias_BHNN[b, h, rows]
                scores_RN += q_BHNE[b, h, rows] @ keys_EN
                scores_RN -= scores_RN.max(-1, keepdims=True)
                np.exp(scores_RN, out=scores_RN)
                mixed_RE = scores_RN @ values_NE
                mixed_BHNE[b, h, rows] = mixed_RE[:, :E] / mixed_RE[:, E:]

        _run(task, len(sets))
        return mixed_BHNE
