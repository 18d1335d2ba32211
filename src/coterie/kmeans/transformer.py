"""The encoder-decoder layer of Figure 5 of Clarkson et al. (2025), with six exchangeable components.

Points are the tokens of the encoder, centres those of the decoder. Both are rows of width E::

    x ← x + encoder_self(x, x) + encoder_cross(x, c)
    c ← c + decoder_self(c, c) + decoder_cross(c, x)
    c ← norm(c)
    c ← c + ffn(c)

The components determine which clustering algorithm the layer runs. All matrices are ordinary parameters, which are
frozen initially. A constructed network can therefore also be trained.
"""

import torch
from torch import Tensor, nn

from coterie.attention import SCORES, Normaliser, attend


def _frozen(matrix: Tensor) -> nn.Parameter:
    return nn.Parameter(matrix, requires_grad=False)


class Attention(nn.Module):
    """One attention component: a score ("dot" or "l2"), a normaliser, and query, key and value matrices (E, E)."""

    def __init__(self, score: str, normaliser: Normaliser, query: Tensor, key: Tensor, value: Tensor):
        super().__init__()
        self.score = score
        self.normaliser = normaliser
        self.query = _frozen(query)
        self.key = _frozen(key)
        self.value = _frozen(value)

    def forward(self, queries_from: Tensor, keys_from: Tensor, key_weight: Tensor | None = None) -> Tensor:
        return attend(
            queries_from @ self.query.mT,
            keys_from @ self.key.mT,
            keys_from @ self.value.mT,
            SCORES[self.score],
            self.normaliser,
            key_weight,
        )


class FeedForward(nn.Module):
    """A feed-forward network with one hidden layer and quadratic activation: w_out (w_in x)² + bias."""

    def __init__(self, w_in: Tensor, w_out: Tensor, bias: Tensor):
        super().__init__()
        self.w_in = _frozen(w_in)
        self.w_out = _frozen(w_out)
        self.bias = _frozen(bias)

    def forward(self, x: Tensor) -> Tensor:
        return (x @ self.w_in.mT).square() @ self.w_out.mT + self.bias


def unit(x: Tensor) -> Tensor:
    """Scale rows to length one. A row of zeros is not changed."""
    length = x.norm(dim=-1, keepdim=True)
    return x / torch.where(length == 0, 1.0, length)


class RMSNorm(nn.Module):
    """Remark 2: z/‖z‖ on one span of the coordinates of a token. The other coordinates are not changed."""

    def __init__(self, span: slice):
        super().__init__()
        self.span = span

    def centred(self, x: Tensor) -> Tensor:
        return x

    def forward(self, x: Tensor) -> Tensor:
        before, after = x[..., : self.span.start], x[..., self.span.stop :]
        return torch.cat([before, unit(self.centred(x[..., self.span])), after], dim=-1)


class LayerNorm(RMSNorm):
    """Definition 6 with epsilon 0, gain 1/√d and no shift, which maps zero-sum vectors to the unit sphere (Lemma 3)."""

    def centred(self, x: Tensor) -> Tensor:
        return x - x.mean(-1, keepdim=True)


class Layer(nn.Module):
    """One layer of the network. ``norm`` and ``ffn`` are optional."""

    def __init__(
        self,
        encoder_self: Attention,
        encoder_cross: Attention,
        decoder_self: Attention,
        decoder_cross: Attention,
        norm: nn.Module | None = None,
        ffn: nn.Module | None = None,
    ):
        super().__init__()
        self.encoder_self = encoder_self
        self.encoder_cross = encoder_cross
        self.decoder_self = decoder_self
        self.decoder_cross = decoder_cross
        self.norm = norm
        self.ffn = ffn

    def encode(self, x: Tensor, c: Tensor, center_weight: Tensor | None = None) -> Tensor:
        """Update the points x (..., N, E) by the centres c (..., K, E).

        ``center_weight`` (..., K) is how often each centre counts.
        """
        return x + self.encoder_self(x, x) + self.encoder_cross(x, c, center_weight)

    def decode(self, x: Tensor, c: Tensor, point_weight: Tensor | None = None) -> Tensor:
        """Update the centres. ``point_weight`` (..., N) is how often each point counts.

        The self-attention is added first, so that it cancels the residual exactly before the new value is added.
        """
        c = c + self.decoder_self(c, c) + self.decoder_cross(c, x, point_weight)
        if self.norm is not None:
            c = self.norm(c)
        if self.ffn is not None:
            c = c + self.ffn(c)
        return c

    def forward(self, x: Tensor, c: Tensor, point_weight: Tensor | None = None) -> tuple[Tensor, Tensor]:
        x = self.encode(x, c)
        return x, self.decode(x, c, point_weight)
