"""The one attention that every model here is made of: a score, a normaliser, and ``attend``.

Shapes: M queries, N keys, E features, any leading batch dimensions. Scores are ``(..., M, N)`` and every normaliser
works along the keys, the last dimension. (Document 002 writes tokens as columns and normalises columns; this is the
same thing transposed.)

A normaliser turns scores into non-negative *numerators*; dividing them by their sum gives the weights. ``attend``
divides after the product with the values, which keeps sums of equal terms exact: the mean of m equal rows is that row.

``key_weight`` says how many times each key counts: a key of weight 2 is the same as that key twice, for every
normaliser.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

import torch
from torch import Tensor

Score = Callable[[Tensor, Tensor], Tensor]

# Values in one block of an intermediate: 2**24 doubles are 128 MB.
BLOCK_VALUES = 2**24


def dot_scores(query: Tensor, key: Tensor) -> Tensor:
    """⟨q, k⟩ for every query and key."""
    return query @ key.mT


def sq_euclidean_scores(query: Tensor, key: Tensor) -> Tensor:
    """-‖q - k‖² for every query and key, from the differences: exactly 0 where they are equal."""
    return -(query.unsqueeze(-2) - key.unsqueeze(-3)).square().sum(-1)


SCORES: dict[str, Score] = {"dot": dot_scores, "l2": sq_euclidean_scores}


class Normaliser(Protocol):
    """Scores to non-negative numerators along the last dimension."""

    def __call__(self, scores: Tensor, key_weight: Tensor | None = None) -> Tensor: ...


def _times(values: Tensor, key_weight: Tensor | None) -> Tensor:
    return values if key_weight is None else values * key_weight.unsqueeze(-2)


def _below_best(scores: Tensor) -> Tensor:
    """Scores minus the best of each query: what every shift-invariant normaliser needs, without overflow."""
    return scores - scores.amax(-1, keepdim=True).detach()


@dataclass(frozen=True)
class Softmax:
    """exp(gamma · score): the usual attention, with inverse temperature gamma (a tensor must end in (M, 1))."""

    gamma: float | Tensor = 1.0

    def __call__(self, scores: Tensor, key_weight: Tensor | None = None) -> Tensor:
        return _times(torch.exp(self.gamma * _below_best(scores)), key_weight)


@dataclass(frozen=True)
class Limiting:
    """The softmax as gamma → ∞: all weight on the best key. Tied keys share it, or the first of them takes it.

    Keys that score within ``rounding`` of the best count as tied: 0 is the mathematics, a little more forgives matrices
    that round.
    """

    ties: Literal["share", "first"] = "share"
    rounding: float = 0.0

    def __call__(self, scores: Tensor, key_weight: Tensor | None = None) -> Tensor:
        if self.ties == "first":
            best = torch.zeros_like(scores).scatter_(-1, scores.argmax(-1, keepdim=True), 1.0)
        else:
            best = (scores >= scores.amax(-1, keepdim=True) - self.rounding).to(scores.dtype)
        return _times(best, key_weight)


@dataclass(frozen=True)
class Linear:
    """The scores themselves, which must not be negative."""

    def __call__(self, scores: Tensor, key_weight: Tensor | None = None) -> Tensor:
        return _times(scores, key_weight)


@dataclass(frozen=True)
class Identity:
    """The scores themselves, not normalised at all."""

    def __call__(self, scores: Tensor, key_weight: Tensor | None = None) -> Tensor:
        return _times(scores, key_weight)


def _ranked(scores: Tensor, key_weight: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Scores from best to worst, the weights in that order, and the weight of all keys up to and with each."""
    ranked, order = scores.sort(dim=-1, descending=True, stable=True)
    if key_weight is None:
        weight = torch.ones_like(ranked)
    else:
        weight = key_weight.unsqueeze(-2).expand_as(scores).gather(-1, order)
    return ranked, weight, weight.cumsum(-1)


@dataclass(frozen=True)
class Sparsemax:
    """The Euclidean projection of gamma · scores onto the simplex (Martins and Astudillo, 2016).

    Weights are (z - tau)₊ with tau such that they sum to one; far keys get exactly zero.
    """

    gamma: float | Tensor = 1.0

    def __call__(self, scores: Tensor, key_weight: Tensor | None = None) -> Tensor:
        z = self.gamma * _below_best(scores)
        # The best key, z = 0, has weight at most 1 / its count, so tau is at least -1 / the smallest count and
        # whatever lies lower is out. Cutting there keeps the sums below finite and accurate.
        floor = -2.0 if key_weight is None else -1.0 - 1.0 / float(key_weight[key_weight > 0].min())
        z = z.clamp(min=floor)
        ranked, weight, count = _ranked(z, key_weight)
        total = (weight * ranked).cumsum(-1)
        inside = (1.0 + count * ranked > total) & (weight > 0)
        last = (torch.arange(z.shape[-1], device=z.device) * inside).amax(-1, keepdim=True)
        tau = (total.gather(-1, last) - 1.0) / count.gather(-1, last)
        return _times((z - tau).clamp(min=0.0), key_weight)


@dataclass(frozen=True)
class TopK:
    """The softmax over the k best keys; keys that tie with the k-th are kept too."""

    k: int
    gamma: float | Tensor = 1.0

    def __call__(self, scores: Tensor, key_weight: Tensor | None = None) -> Tensor:
        ranked, _, count = _ranked(scores, key_weight)
        enough = (count < self.k).sum(-1, keepdim=True).clamp(max=scores.shape[-1] - 1)
        kept = scores >= ranked.gather(-1, enough)
        return _times(torch.exp(self.gamma * _below_best(scores)) * kept, key_weight)


@dataclass(frozen=True)
class NormMax:
    """Norm-max attention for alpha → ∞ (document 002, equation 30): equal weight on the best keys, nothing on the rest.

    The maximiser of ⟨gamma · s, z⟩ - max z over the simplex is uniform on the m best keys, where m maximises
    gamma · (mean of the m best) - 1/m. Taking in key m+1 pays while gamma · Σ_{i ≤ m} (s_i - s_{m+1}) < 1, and that
    sum never falls as m grows: so the keys kept are those that pass this test against all better ones. Keys of equal
    score stay together.

    One gamma for all queries cuts at a gap that does not depend on how many keys a query has. Algorithm 4's percentile
    needs a gamma per query: ``keep`` sets it so that this share of each query's own keys (those within ``gap`` of its
    best) is kept, at least one.
    """

    gamma: float | Tensor = 1.0
    keep: float | None = None
    gap: float = float("inf")

    def __call__(self, scores: Tensor, key_weight: Tensor | None = None) -> Tensor:
        scores = _below_best(scores)
        ranked, weight, count = _ranked(scores, key_weight)
        total = (weight * ranked).cumsum(-1)
        # cost of taking in a key: Σ over all better keys of (their score - its score)
        cost = (total - weight * ranked) - (count - weight) * ranked
        limit = 1.0 / torch.as_tensor(self.gamma, dtype=scores.dtype, device=scores.device)
        if self.keep is not None:
            limit = self._limit(ranked, weight, count, cost)
        kept = (cost < limit) | (ranked == 0)
        worst_kept = ranked.gather(-1, kept.sum(-1, keepdim=True) - 1)
        return _times((scores >= worst_kept).to(scores.dtype), key_weight)

    def _limit(self, ranked: Tensor, weight: Tensor, count: Tensor, cost: Tensor) -> Tensor:
        """1/gamma for each query: half-way between the cost of its last key to keep and that of the next lower one."""
        assert self.keep is not None
        members = (weight * (ranked > -self.gap)).sum(-1, keepdim=True)
        wanted = share_of(members, self.keep)
        last = (count < wanted).sum(-1, keepdim=True).clamp(max=ranked.shape[-1] - 1)
        beyond = ranked < ranked.gather(-1, last)
        following = torch.where(beyond, cost, torch.inf).amin(-1, keepdim=True)
        here = cost.gather(-1, last)
        return torch.where(following.isinf(), torch.inf, here + (following - here) / 2)


def share_of(count: Tensor, share: float) -> Tensor:
    """``share`` of a count, forgiving the rounding of the product: 0.9 of 10 is 9, not 9.000000000000002."""
    return count * share * (1 - 4 * torch.finfo(count.dtype).eps)


@dataclass(frozen=True)
class GumbelSoftmax:
    """A sample from the categorical distribution ∝ exp(score), relaxed by a temperature; 0 gives the sample itself."""

    generator: torch.Generator
    temperature: float = 0.0

    def __call__(self, scores: Tensor, key_weight: Tensor | None = None) -> Tensor:
        noisy = scores + gumbel_noise(scores.shape, scores, self.generator)
        if key_weight is not None:
            noisy = noisy + key_weight.log().unsqueeze(-2)
        if self.temperature == 0.0:
            return Limiting(ties="first")(noisy)
        return Softmax(1.0 / self.temperature)(noisy)


def gumbel_noise(shape: torch.Size, like: Tensor, generator: torch.Generator) -> Tensor:
    """Independent standard Gumbel variables: -log of standard exponentials."""
    uniform = torch.rand(shape, dtype=torch.float64, device=generator.device, generator=generator)
    return -(-uniform.clamp_(min=torch.finfo(torch.float64).tiny).log()).log().to(like)


def normalise(numerators: Tensor) -> Tensor:
    """Numerators to weights that sum to one. A query whose numerators are all zero looks at every key alike."""
    total = numerators.sum(-1, keepdim=True)
    return torch.where(total == 0, 1.0 / numerators.shape[-1], numerators / torch.where(total == 0, 1.0, total))


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score: Score,
    normaliser: Normaliser,
    key_weight: Tensor | None = None,
) -> Tensor:
    """Each query's weighted mean of the values, in blocks of queries so that memory stays bounded.

    Shapes: query (..., M, E), key (..., N, E), value (..., N, V); result (..., M, V).
    """
    per_query = key.shape[:-1].numel() * (key.shape[-1] if score is sq_euclidean_scores else 1)
    rows = max(1, BLOCK_VALUES // max(1, per_query))
    blocks = [_attend(block, key, value, score, normaliser, key_weight) for block in query.split(rows, dim=-2)]
    return blocks[0] if len(blocks) == 1 else torch.cat(blocks, dim=-2)


def _attend(
    query: Tensor, key: Tensor, value: Tensor, score: Score, normaliser: Normaliser, key_weight: Tensor | None
) -> Tensor:
    numerators = normaliser(score(query, key), key_weight)
    mixed = numerators @ value
    if isinstance(normaliser, Identity):
        return mixed
    total = numerators.sum(-1, keepdim=True)
    empty = total == 0
    if empty.any():
        return torch.where(empty, value.mean(-2, keepdim=True), mixed / torch.where(empty, 1.0, total))
    return mixed / total
