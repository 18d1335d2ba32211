"""Attention with exchangeable score and normaliser.

Shapes: M queries, N keys, E features, and any leading batch dimensions. Scores have shape ``(..., M, N)``, and every
normaliser works along the keys, the last dimension. (Clarkson et al., 2025, write tokens as columns and normalise
columns, which is the transpose.)

A normaliser turns scores into non-negative *numerators*. Dividing them by their sum gives the weights. ``attend``
divides after the product with the values, which keeps sums of equal terms exact: the mean of m equal rows is that row.

``key_weight`` is how often each key counts. For every normaliser, a key of weight 2 is equivalent to two copies of the
key.
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
    """The dot product ⟨q, k⟩ of every query and key."""
    return query @ key.mT


def sq_euclidean_scores(query: Tensor, key: Tensor) -> Tensor:
    """The negative squared distance -‖q - k‖² of every query and key; exactly 0 for equal vectors."""
    return -(query.unsqueeze(-2) - key.unsqueeze(-3)).square().sum(-1)


SCORES: dict[str, Score] = {"dot": dot_scores, "l2": sq_euclidean_scores}


class Normaliser(Protocol):
    """A function from scores to non-negative numerators, along the last dimension.

    If it has a true attribute ``couples_queries``, it needs the scores of all queries at once.
    """

    def __call__(self, scores: Tensor, key_weight: Tensor | None = None) -> Tensor: ...


def _times(values: Tensor, key_weight: Tensor | None) -> Tensor:
    return values if key_weight is None else values * key_weight.unsqueeze(-2)


def _below_best(scores: Tensor) -> Tensor:
    """Scores minus the best score of each query. A shift-invariant normaliser of the result does not overflow."""
    return scores - scores.amax(-1, keepdim=True).detach()


@dataclass(frozen=True)
class Softmax:
    """The softmax exp(gamma · score), with inverse temperature gamma.

    A tensor gamma must have a shape that ends in (M, 1).
    """

    gamma: float | Tensor = 1.0

    def __call__(self, scores: Tensor, key_weight: Tensor | None = None) -> Tensor:
        return _times(torch.exp(self.gamma * _below_best(scores)), key_weight)


@dataclass(frozen=True)
class Limiting:
    """The limit of the softmax for gamma → ∞: all weight is on the best key.

    With ``ties="share"`` tied keys share the weight, with ``ties="first"`` the first of them gets all of it. Keys whose
    score is within ``rounding`` of the best count as tied. The exact limit has ``rounding=0``; a small positive value
    compensates for rounding in matrix products.
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
    """Linear attention: the numerators are the scores, which must not be negative."""

    def __call__(self, scores: Tensor, key_weight: Tensor | None = None) -> Tensor:
        return _times(scores, key_weight)


@dataclass(frozen=True)
class Identity:
    """No normalisation: the weights are the scores."""

    def __call__(self, scores: Tensor, key_weight: Tensor | None = None) -> Tensor:
        return _times(scores, key_weight)


def _ranked(scores: Tensor, key_weight: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Scores in descending order, the weights in that order, and their cumulative sums."""
    ranked, order = scores.sort(dim=-1, descending=True, stable=True)
    if key_weight is None:
        weight = torch.ones_like(ranked)
    else:
        weight = key_weight.unsqueeze(-2).expand_as(scores).gather(-1, order)
    return ranked, weight, weight.cumsum(-1)


@dataclass(frozen=True)
class Sparsemax:
    """The Euclidean projection of gamma · scores onto the simplex (Martins and Astudillo, 2016).

    The weights are (z - tau)₊, where tau is such that they sum to one. Keys with low scores get weight zero.
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
    """The softmax over the k best keys. Keys that tie with the k-th are included."""

    k: int
    gamma: float | Tensor = 1.0

    def __call__(self, scores: Tensor, key_weight: Tensor | None = None) -> Tensor:
        ranked, _, count = _ranked(scores, key_weight)
        enough = (count < self.k).sum(-1, keepdim=True).clamp(max=scores.shape[-1] - 1)
        kept = scores >= ranked.gather(-1, enough)
        return _times(torch.exp(self.gamma * _below_best(scores)) * kept, key_weight)


@dataclass(frozen=True)
class NormMax:
    """Norm-max attention for alpha → ∞ (Clarkson et al., 2025, equation 30): equal weights on the best keys.

    All other keys have weight zero. The maximiser of ⟨gamma · s, z⟩ - max z over the simplex is uniform on the m best
    keys, where m maximises gamma · (mean of the m best) - 1/m. Including key m+1 increases the objective while gamma ·
    Σ_{i ≤ m} (s_i - s_{m+1}) < 1, and that sum is non-decreasing in m. So a key is kept if it passes this test against
    all better keys. Keys with equal scores are kept together.

    With one gamma for all queries, the cut does not depend on the number of keys of a query. The percentile of
    Algorithm 4 requires one gamma per query. With ``keep``, it is set such that this share of the keys of each query is
    kept, and at least one key. The keys of a query are those within ``gap`` of its best score.
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
        """1/gamma per query: half-way between the cost of the last key to keep and that of the next lower score."""
        assert self.keep is not None
        members = (weight * (ranked > -self.gap)).sum(-1, keepdim=True)
        wanted = share_of(members, self.keep)
        last = (count < wanted).sum(-1, keepdim=True).clamp(max=ranked.shape[-1] - 1)
        beyond = ranked < ranked.gather(-1, last)
        following = torch.where(beyond, cost, torch.inf).amin(-1, keepdim=True)
        here = cost.gather(-1, last)
        return torch.where(following.isinf(), torch.inf, here + (following - here) / 2)


def share_of(count: Tensor, share: float) -> Tensor:
    """A share of a count, with a margin for the rounding of the product: 0.9 of 10 is 9, not 9.000000000000002."""
    return count * share * (1 - 4 * torch.finfo(count.dtype).eps)


@dataclass(frozen=True)
class Gumbel:
    """A sample from the categorical distribution ∝ exp(score): all weight is on the key that is drawn."""

    generator: torch.Generator

    def __call__(self, scores: Tensor, key_weight: Tensor | None = None) -> Tensor:
        noisy = scores + gumbel_noise(scores.shape, scores, self.generator)
        if key_weight is not None:
            noisy = noisy + key_weight.log().unsqueeze(-2)
        return Limiting(ties="first")(noisy)


def gumbel_noise(shape: torch.Size, like: Tensor, generator: torch.Generator) -> Tensor:
    """Independent samples of the standard Gumbel distribution."""
    uniform = torch.rand(shape, dtype=torch.float64, device=generator.device, generator=generator)
    return -(-uniform.clamp_(min=torch.finfo(torch.float64).tiny).log()).log().to(like)


def normalise(numerators: Tensor) -> Tensor:
    """Divide numerators by their sum. If all numerators of a query are zero, its weights are equal."""
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
    """Compute the weighted mean of the values for each query, in blocks of queries so that memory is bounded.

    Shapes: query (..., M, E), key (..., N, E), value (..., N, V); result (..., M, V).
    """
    per_query = key.shape[:-1].numel() * (key.shape[-1] if score is sq_euclidean_scores else 1)
    rows = max(1, BLOCK_VALUES // max(1, per_query))
    if getattr(normaliser, "couples_queries", False):
        scores = torch.cat([score(block, key) for block in query.split(rows, dim=-2)], dim=-2)
        return normaliser(scores, key_weight) @ value
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
