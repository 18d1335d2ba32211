"""The weights of the constructed transformers of Clarkson et al. (2025), each with a short proof.

A token is a point or a centre in named directions, written as a row of width E:

    plain      [ x (d)                          | y (k) ]
    lifted     [ x (d), ‖x‖² (1), -1/2 (1)      | y (k) ]     Definition 5
    mirrored   [ x/√2 (d), -x/√2 (d)            | y (k) ]     zero-sum, as LayerNorm needs it, for any x

``place`` is the part to the left of the bar, and ``label`` the part to the right. A point starts with label 0, and
centre j always has the unit vector e_j as its label. ``P_place`` and ``P_label`` below are the projections on these
directions.
"""

import math

import torch
from torch import Tensor

from coterie import attention
from coterie.attention import Limiting, Normaliser
from coterie.kmeans.algorithm import Algorithm
from coterie.kmeans.family import Row
from coterie.kmeans.transformer import Attention, FeedForward, Layer, LayerNorm, RMSNorm
from coterie.kmeans.transport_attention import Transport


class Stream:
    """The named directions of a token, and the conversion to and from tokens."""

    def __init__(self, row: Row, d: int, k: int):
        self.kind = row.form.stream
        self.d, self.k = d, k
        self.n_place = {"plain": d, "lifted": d + 2, "mirrored": 2 * d}[self.kind]
        self.width = self.n_place + k
        self.place = slice(0, self.n_place)
        self.coordinates = slice(0, 2 * d if self.kind == "mirrored" else d)
        self.label = slice(self.n_place, self.width)

    def projection(self, span: slice, like: Tensor) -> Tensor:
        """The projection I_{d+k}^{i:j} of Definition 3."""
        diagonal = torch.zeros(self.width, dtype=like.dtype, device=like.device)
        diagonal[span] = 1.0
        return torch.diag(diagonal)

    def _placed(self, x: Tensor) -> Tensor:
        if self.kind == "lifted":
            return torch.cat([x, x.square().sum(-1, keepdim=True), torch.full_like(x[..., :1], -0.5)], dim=-1)
        if self.kind == "mirrored":
            return torch.cat([x, -x], dim=-1) / math.sqrt(2)
        return x

    def embed_points(self, x: Tensor) -> Tensor:
        return torch.cat([self._placed(x), x.new_zeros(*x.shape[:-1], self.k)], dim=-1)

    def embed_centers(self, c: Tensor) -> Tensor:
        label = torch.eye(self.k, dtype=c.dtype, device=c.device).expand(*c.shape[:-2], self.k, self.k)
        return torch.cat([self._placed(c), label], dim=-1)

    def centers(self, c: Tensor) -> Tensor:
        """The centres that the tokens of the decoder represent."""
        if self.kind == "mirrored":
            return (c[..., : self.d] - c[..., self.d : 2 * self.d]) / math.sqrt(2)
        return c[..., : self.d]

    def assignments(self, x: Tensor) -> Tensor:
        """The membership (..., N, K) of each point in each cluster, from the tokens of the encoder."""
        return x[..., self.label]


def layer(algorithm: Algorithm, x: Tensor, c: Tensor, override: dict[str, Normaliser] | None = None) -> Layer:
    """The layer that runs one iteration of the algorithm on points x (N, d) and centres c (K, d).

    x and c are needed only for their sizes and scale. ``override`` replaces the normalisers of named components, for
    example by a softmax with a large finite gamma where the proof requires the limit.

    Encoder. Scores compare places. The cross-attention (V = P_label) adds e_j for the centre(s) j that the point
    chooses. Where sizes are bounded, all points choose together (see ``transport``).
    The self-attention of a point attends to the point itself, since no other point is nearer to it (equal
    points have equal labels), and with V = -P_label subtracts its old label. So the label becomes the new choice, and
    the place is unchanged.

    Decoder. The self-attention compares labels, and e_j matches only itself, so V = -P_place subtracts the old centre.
    The cross-attention (V = P_coordinates) adds the weighted mean of the points. The label is unchanged.
    """
    row = algorithm.row
    stream = Stream(row, x.shape[-1], c.shape[-2])
    place, label = stream.projection(stream.place, x), stream.projection(stream.label, x)
    bring = stream.projection(stream.coordinates, x)
    query, key = _compare_places(stream, place)
    score = row.form.score
    gap = _gap(algorithm, x, c)
    sockets = {
        "encoder_self": Attention(score, Limiting(), query, key, -label),
        "encoder_cross": Attention(score, normaliser(row.variant.points, algorithm, gap), query, key, label),
        "decoder_self": Attention("dot", Limiting(), label, label, -place),
        "decoder_cross": _decoder_cross(algorithm, stream, query, key, label, bring, gap),
    }
    for name, other in (override or {}).items():
        sockets[name].normaliser = other
    norm = {"layer": LayerNorm, "rms": RMSNorm, None: None}[row.form.norm]
    return Layer(
        **sockets,
        norm=None if norm is None else norm(stream.place),
        ffn=_relift(stream, x) if row.form.ffn else None,
    )


def _compare_places(stream: Stream, place: Tensor) -> tuple[Tensor, Tensor]:
    """Query and key matrices with which the score of the form ranks the centres correctly.

    Plain and mirrored places are compared directly (Theorem 1: -‖x - c‖²; Theorem 4: ⟨x, c⟩, and mirrored, (⟨x, c⟩ +
    ⟨x, c⟩)/2). Lifted places need Lemma 2: with the last two coordinates swapped and everything doubled, 2(⟨x, c⟩ -
    ½‖c‖² - ½‖x‖²) = -‖x - c‖² is a dot product.
    """
    if stream.kind != "lifted":
        return place, place
    swap = 2 * place
    last, other = stream.n_place - 1, stream.n_place - 2
    swap[[last, other]] = swap[[other, last]]
    return swap, place


def _decoder_cross(
    algorithm: Algorithm,
    stream: Stream,
    query: Tensor,
    key: Tensor,
    label: Tensor,
    bring: Tensor,
    gap: float,
) -> Attention:
    """The cross-attention of the decoder.

    If it reads labels only, a point scores 1 for the centre that it chose and 0 for the others (Lemma 1). If it reads
    members, the score of the form is lowered by ``gap`` for points of other clusters. With ℓ2 scores, √(gap/2) on the
    label directions costs gap/2 · ‖y - e_j‖² = gap for y ≠ e_j. With dot products, √gap on both sides adds gap · ⟨y,
    e_j⟩ for the own cluster. All normalisers used here are invariant to a shift of all scores, so the two are
    equivalent.
    """
    row = algorithm.row
    rule = normaliser(row.variant.centers, algorithm, gap)
    if row.variant.reads == "labels":
        return Attention("dot", rule, label, label, bring)
    stretch = math.sqrt(gap / 2 if row.form.score == "l2" else gap) * label
    return Attention(row.form.score, rule, query + stretch, key + stretch, bring)


def _relift(stream: Stream, like: Tensor) -> FeedForward:
    """The feed-forward network of Theorem 3: squares of the coordinates sum to ‖c‖², and the bias writes -1/2."""
    w_in = like.new_zeros(stream.d, stream.width)
    w_in[:, : stream.d] = torch.eye(stream.d, dtype=like.dtype, device=like.device)
    w_out = like.new_zeros(stream.width, stream.d)
    w_out[stream.d] = 1.0
    bias = like.new_zeros(stream.width)
    bias[stream.d + 1] = -0.5
    return FeedForward(w_in, w_out, bias)


def _gap(algorithm: Algorithm, x: Tensor, c: Tensor) -> float:
    """How much lower points of other clusters score.

    For k-medoids it is the user's 2 delta. Otherwise it must be eight times the largest difference of scores among
    points (at most 4 max‖x‖²), so that NormMax also excludes points that are tied between two centres, whose labels (½,
    ½) lower their scores by a quarter of the gap. It must also make the softmax exactly zero. A larger gap than
    necessary would only cost precision.
    """
    if algorithm.draws:
        return 2.0 * algorithm.delta
    radius_sq = max(float(x.square().sum(-1).max()), float(c.square().sum(-1).max()))
    return 32.0 * radius_sq + 1600.0 / (algorithm.trim_gamma or _gamma(algorithm))


def _gamma(algorithm: Algorithm) -> float:
    if algorithm.gamma is None:
        raise ValueError("gamma is not set: call Algorithm.with_gamma first.")
    return algorithm.gamma


def normaliser(rule: str, algorithm: Algorithm, gap: float = math.inf) -> Normaliser:
    """The normaliser of a rule of the family."""
    if rule == "gumbel":
        return attention.Gumbel(torch.Generator().manual_seed(algorithm.seed))
    if rule == "norm-max":
        if algorithm.trim_gamma is not None:
            return attention.NormMax(algorithm.trim_gamma)
        return attention.NormMax(keep=algorithm.keep, gap=gap / 8)
    if rule == "transport":
        return Transport(algorithm.sizes)
    gamma = _gamma(algorithm)
    if rule == "sinkhorn":
        return Transport(algorithm.sizes, gamma)
    rules: dict[str, Normaliser] = {
        "limiting": attention.Limiting(),
        "softmax": attention.Softmax(gamma),
        "linear": attention.Linear(),
        "sparsemax": attention.Sparsemax(gamma),
        "top-k": attention.TopK(algorithm.top, gamma),
    }
    return rules[rule]
