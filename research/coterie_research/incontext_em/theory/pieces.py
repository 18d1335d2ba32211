"""Heads and hidden units from which the constructed layers are put together, each with the reason why it works.

A head is the triple (Q, K, V) of Definitions 2.1 and 2.2: token j collects Σ_i weight_ij V h_i, with weights from the
scores ⟨Q h_i, K h_j⟩. A hidden group is the pair (W₁, W₂) of Definition 2.3; groups side by side are one FC layer, and
all read the token as it was before the layer.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from coterie_research.incontext_em.theory.approximation import SigmoidSum
from coterie_research.incontext_em.theory.context import Rows
from coterie_research.incontext_em.theory.modules import (
    Attention,
    Block,
    FullyConnected,
    SoftmaxAttention,
    UnnormalisedAttention,
)


class Heads(NamedTuple):
    """M heads alike in their number R of score rows: q (M, R, D), k (M, R, D), v (M, D, D)."""

    q: Tensor
    k: Tensor
    v: Tensor


class Hidden(NamedTuple):
    w1: Tensor
    w2: Tensor


def head(q: Tensor, k: Tensor, v: Tensor) -> Heads:
    return Heads(q.unsqueeze(0), k.unsqueeze(0), v.unsqueeze(0))


def _stacked(parts: list[Heads]) -> tuple[Tensor, Tensor, Tensor]:
    """All heads of a layer, their score rows filled up with zeros to the largest number."""
    n_rows = max(part.q.shape[1] for part in parts)

    def filled(matrices: Tensor) -> Tensor:
        missing = matrices.new_zeros(len(matrices), n_rows - matrices.shape[1], matrices.shape[2])
        return torch.cat([matrices, missing], dim=1)

    return (
        torch.cat([filled(part.q) for part in parts]),
        torch.cat([filled(part.k) for part in parts]),
        torch.cat([part.v for part in parts]),
    )


def softmax(*parts: Heads) -> SoftmaxAttention:
    return SoftmaxAttention(*_stacked(list(parts)))


def unnormalised(*parts: Heads) -> UnnormalisedAttention:
    return UnnormalisedAttention(*_stacked(list(parts)))


def block(rows: Rows, attention: Attention, *hidden: Hidden) -> Block:
    w1 = torch.cat([torch.zeros(0, rows.width, dtype=torch.float64)] + [part.w1 for part in hidden])
    w2 = torch.cat([torch.zeros(rows.width, 0, dtype=torch.float64)] + [part.w2 for part in hidden], dim=1)
    return Block(attention, FullyConnected(w1, w2))


# --- hidden groups -------------------------------------------------------------------------------------------------


def copied(rows: Rows, source: slice, *targets: slice) -> Hidden:
    """target ← target + source for every target, since u = relu(u) - relu(-u)."""
    reading = rows.reading(source)
    writing = torch.stack([rows.reading(target).mT for target in targets]).sum(0)
    return Hidden(torch.cat([reading, -reading]), torch.cat([writing, -writing], dim=1))


def cleared(rows: Rows, *spans: slice) -> Hidden:
    """span ← 0, since u - relu(u) + relu(-u) = 0, exactly, in floating point too."""
    reading = torch.cat([rows.reading(span) for span in spans])
    return Hidden(torch.cat([reading, -reading]), torch.cat([-reading.mT, reading.mT], dim=1))


def gated(rows: Rows, source: Tensor, target: Tensor, limit: float) -> Hidden:
    """On token a < k: target ← target + the a-th of k values; elsewhere nothing.

    Hidden unit a is relu(value_a - limit·(1 - e_a)), with the marker's a-th direction e_a: the value itself on token a
    if it is not negative, and 0 on every other token as long as values stay below ``limit``. ``source`` (k, D) reads
    the k values, ``target`` (D, k) says where each goes.
    """
    w1 = source + rows.reading(rows.of_center, limit)
    w1[:, rows.one] -= limit
    return Hidden(w1, target)


# --- heads ---------------------------------------------------------------------------------------------------------


def mean_of_all(rows: Rows, source: slice, target: slice, scale: float = 1.0) -> Heads:
    """Softmax: all scores are zero, so every token collects scale · the mean of ``source`` over all tokens."""
    nothing = torch.zeros(1, rows.width, dtype=torch.float64)
    return head(nothing, nothing, rows.moving(source, target, scale))


def subtracted_center(rows: Rows, a: int, strength: float) -> Heads:
    """Every token subtracts centre a from its own copy of x number a.

    The score is strength · e_a(i): that much for token a, which holds μ_a, and zero for all others. Un-normalised with
    strength 1 the sum is μ_a itself. The softmax gives token a the weight 1 / (1 + (N - 1) exp(-strength)), so a share
    of at most (N - 1) exp(-strength) of μ_a is missing. The other k - 1 centres, alone in having a value, add
    at most exp(-strength) each. The error is at most (N + k - 2) exp(-strength) times the largest centre: of the order
    N^(1-C) for strength C log N. The paper approximates this constant map by M units; nothing has to be approximated.
    """
    marker = slice(rows.marker.start + a, rows.marker.start + a + 1)
    return head(rows.reading(marker, strength), rows.reading(rows.one), rows.moving(rows.center, rows.copy_of(a), -1.0))


def units(rows: Rows, total: SigmoidSum, source: slice, target: slice, n_points: int) -> Heads:
    """Softmax, one head for each unit: target ← target + Σ_m c_m sigmoid(⟨w_m, source⟩ + b_m), exactly, on every token.

    Head m gives token 0, alone marked by e_0, the score s + log(N - 1) with s = ⟨w_m, source_j⟩ + b_m, and all others
    0. Then the weight of token 0 is (N - 1) eˢ / ((N - 1) eˢ + N - 1) = sigmoid(s). The value c_m is read from e_0, so
    the other tokens add nothing. (Lemma A.2 shifts by log d; what has to be balanced is the number of other tokens.)
    """
    first = slice(rows.marker.start, rows.marker.start + 1)
    q = rows.reading(first).expand(total.n_units, 1, rows.width)
    k = torch.zeros(total.n_units, 1, rows.width, dtype=torch.float64)
    k[:, 0, source] = total.weights
    k[:, 0, rows.one.start] = total.biases + math.log(n_points - 1)
    v = total.coefficients[:, None, None] * rows.moving(first, target)
    return Heads(q, k, v)
