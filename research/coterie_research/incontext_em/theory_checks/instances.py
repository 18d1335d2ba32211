"""The mixtures on which the constructed networks are measured."""

import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from coterie_research.incontext_em.theory import lloyd


def mixture(n: int, seed: int, d: int = 2, k: int = 3, shift: float = 5.0) -> tuple[Tensor, Tensor]:
    """n points around k centres from N(shift, 9 I), noise N(0, I), and k of the points to start from.

    The clusters' sizes are as n / k as can be. ``shift`` moves the mixture away from the origin; for 0 the centres add
    up to zero, so that the mixture's mean is zero and the sample's is not.
    """
    g = torch.Generator().manual_seed(seed)
    centers = 3 * torch.randn(k, d, dtype=torch.float64, generator=g)
    centers = centers + shift if shift else centers - centers.mean(0)
    x = centers[torch.arange(n) % k] + torch.randn(n, d, dtype=torch.float64, generator=g)
    x = x[torch.randperm(n, generator=g)]
    return x, x[torch.randperm(n, generator=g)[:k]]


def instances(count: int, n: int = 200, d: int = 2, k: int = 3, tau: int = 5) -> Iterator[tuple[int, Tensor, Tensor]]:
    """(seed, points, start) of the first ``count`` seeds for which Algorithm 1 is defined: no cluster gets empty."""
    seed = -1
    while count:
        seed += 1
        x, start = mixture(n, seed, d, k)
        try:
            lloyd(x, start, tau)
        except ValueError:
            continue
        count -= 1
        yield seed, x, start


def geometric(values: Sequence[float]) -> float:
    return math.exp(sum(math.log(max(value, 1e-300)) for value in values) / len(values))
