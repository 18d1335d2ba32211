"""Definitions 2.1-2.5 of He et al. (2025): two attention layers, the fully connected layer, and what is made of them.

Shapes: N tokens of width D as rows, h (..., N, D); M heads; R rows of a query or key matrix (the other D - R rows of
the definition's square matrix are zero and change no score).

The definition normalises the *columns* of (Q H)ᵀ(K H). So token j looks with K h_j, and Q h_i is what it looks at: the
two letters have swapped their usual parts. They are kept here, so that weights can be read beside the paper.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from coterie.attention import BLOCK_VALUES, Identity, Softmax, attend, dot_scores, normalise


def _frozen(matrix: Tensor) -> nn.Parameter:
    return nn.Parameter(matrix, requires_grad=False)


class Attention(nn.Module):
    """M heads with their matrices q (M, R, D), k (M, R, D) and v (M, D, D); the residual is part of the layer."""

    def __init__(self, q: Tensor, k: Tensor, v: Tensor):
        super().__init__()
        self.q, self.k, self.v = _frozen(q), _frozen(k), _frozen(v)

    @property
    def n_heads(self) -> int:
        return self.v.shape[0]

    def definition(self, h: Tensor) -> Tensor:
        """The layer as the paper writes it, all scores of all heads at once: what ``forward`` is tested against."""
        raise NotImplementedError

    def _scores(self, h: Tensor) -> Tensor:
        """(..., M, N, N), row i and column j: (Q h_i)ᵀ (K h_j)."""
        h = h.unsqueeze(-3)
        return (h @ self.q.mT) @ (h @ self.k.mT).mT

    def _mixed(self, h: Tensor, weights: Tensor) -> Tensor:
        """h_j + Σ over heads of Σ_i weight_ij V h_i."""
        return h + (weights.mT @ (h.unsqueeze(-3) @ self.v.mT)).sum(-3)


class SoftmaxAttention(Attention):
    """Definition 2.1: H + Σ_m (V_m H) SoftMax((Q_m H)ᵀ(K_m H)), normalised over the tokens looked at.

    Tokens that no query matrix of the layer tells apart get equal weights in every head. ``forward`` therefore scores
    one token of each such group and lets it count as often as the group is large, with the group's mean value: the
    same function, in O(N · groups) instead of O(N²). In the constructed networks there are at most k + 1 groups.
    """

    def definition(self, h: Tensor) -> Tensor:
        return self._mixed(h, torch.softmax(self._scores(h), dim=-2))

    def forward(self, h: Tensor) -> Tensor:
        if self.n_heads == 0:
            return h
        # A column of zeros stands for what a layer with Q = 0 sees.
        seen = torch.cat([torch.zeros_like(h[:, :1]), h[:, (self.q != 0).any(0).any(0)]], dim=1)
        _, group, count = torch.unique(seen, dim=0, return_inverse=True, return_counts=True)
        representative = torch.empty_like(count).scatter_(0, group, torch.arange(len(h), device=h.device))
        mean = torch.zeros(len(count), h.shape[1], dtype=h.dtype, device=h.device).index_add_(0, group, h)
        mean = mean / count.unsqueeze(1)
        key, value = h[representative] @ self.q.mT, (mean @ self.v.mT).flatten(0, 1)
        weight = count.to(h.dtype).expand(self.n_heads, -1)
        blocks = h.split(max(1, BLOCK_VALUES // len(value)))
        return torch.cat([block + self._collected(block, key, value, weight) for block in blocks])

    def _collected(self, looking: Tensor, key: Tensor, value: Tensor, weight: Tensor) -> Tensor:
        """Σ over heads and groups of weight · value, in one product; value (M · groups, D)."""
        query = (looking @ self.k.flatten(0, 1).mT).unflatten(1, self.k.shape[:2]).transpose(0, 1)
        weights = normalise(Softmax()(dot_scores(query, key), weight))
        return weights.transpose(0, 1).flatten(1) @ value


class UnnormalisedAttention(Attention):
    """Definition 2.2: H + Σ_m (V_m H)(Q_m H)ᵀ(K_m H), a polynomial of degree 3 in H."""

    def definition(self, h: Tensor) -> Tensor:
        return self._mixed(h, self._scores(h))

    def forward(self, h: Tensor) -> Tensor:
        if self.n_heads == 0:
            return h
        tokens = h.unsqueeze(-3)
        return h + attend(tokens @ self.k.mT, tokens @ self.q.mT, tokens @ self.v.mT, dot_scores, Identity()).sum(-3)


class FullyConnected(nn.Module):
    """Definition 2.3: H + W₂ relu(W₁ H), with w1 (hidden, D) and w2 (D, hidden)."""

    def __init__(self, w1: Tensor, w2: Tensor):
        super().__init__()
        self.w1, self.w2 = _frozen(w1), _frozen(w2)

    def forward(self, h: Tensor) -> Tensor:
        return h + torch.relu(h @ self.w1.mT) @ self.w2.mT


class Block(nn.Module):
    """One layer ℓ of Definitions 2.4 and 2.5: an attention, then a fully connected layer."""

    def __init__(self, attention: Attention, fully_connected: FullyConnected):
        super().__init__()
        self.attention = attention
        self.fully_connected = fully_connected

    def forward(self, h: Tensor) -> Tensor:
        return self.fully_connected(self.attention(h))


class TransformerPlus(nn.Module):
    """Definition 2.5: blocks whose attentions may be softmax or un-normalised, between two outer matrices.

    ``w0`` (d₁, D) picks what is read from each token; the matrix that mixes tokens is the identity, an answer for every
    token. A block may stand in the list several times: iterations share their weights.
    """

    allowed: tuple[type[Attention], ...] = (SoftmaxAttention, UnnormalisedAttention)

    def __init__(self, blocks: Sequence[Block], w0: Tensor):
        super().__init__()
        for number, block in enumerate(blocks):
            if not isinstance(block.attention, self.allowed):
                names = " or ".join(kind.__name__ for kind in self.allowed)
                raise TypeError(f"layer {number} of a {type(self).__name__} must be {names}, not {block.attention}.")
        self.blocks = nn.ModuleList(blocks)
        self.w0 = _frozen(w0)

    @property
    def heads(self) -> list[int]:
        """M^(ℓ), the number of heads of each layer."""
        return [block.attention.n_heads for block in self.blocks if isinstance(block, Block)]

    def states(self, h: Tensor) -> list[Tensor]:
        """h before the first block and after each."""
        states = [h]
        for block in self.blocks:
            states.append(block(states[-1]))
        return states

    def forward(self, h: Tensor) -> Tensor:
        return self.states(h)[-1] @ self.w0.mT


class Transformer(TransformerPlus):
    """Definition 2.4: every attention is a softmax attention."""

    allowed = (SoftmaxAttention,)


def parameter_norm(model: TransformerPlus, per_head: bool = True) -> float:
    """‖θ‖ of section 2.1: the largest layer's max(‖Q‖, ‖K‖) + Σ_m ‖V_m‖ + ‖W₁‖ + ‖W₂‖, plus the two outer matrices.

    As printed the norms of W₁ and W₂ stand inside the sum over heads and so count M times; ``per_head=False`` counts
    them once, as in the definition that the paper refers to.
    """
    outer = _operator_norm(model.w0) + 1.0
    largest = 0.0
    for block in set(model.blocks):
        assert isinstance(block, Block)
        attention, dense = block.attention, block.fully_connected
        total = (_operator_norm(dense.w1) + _operator_norm(dense.w2)) * (attention.n_heads if per_head else 1)
        if attention.n_heads:
            looking = max(_operator_norm(attention.q), _operator_norm(attention.k))
            total += looking + float(torch.linalg.matrix_norm(attention.v, ord=2).sum())
        largest = max(largest, total)
    return largest + outer


def _operator_norm(matrices: Tensor) -> float:
    """The largest singular value, over all matrices of a stack; 0 for an empty matrix."""
    return float(torch.linalg.matrix_norm(matrices, ord=2).max()) if matrices.numel() else 0.0
