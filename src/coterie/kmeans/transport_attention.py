"""The normaliser of :mod:`coterie.kmeans.transport`: exact, and with entropy."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from coterie.kmeans.transport import Planner, Sizes, bounds

MOST_STEPS = 200
STEP_SIZES = (1.0, 0.25, 0.06, 0.015, 0.004)
PRECISION = 1e-13  # of a sum, relative to the number of rows
ROUNDING = 1e-13  # of the value, by which a step that brings the sums nearer may rise


class Transport:
    """The normaliser of attention that computes the plan. ``gamma=None`` is the limit for gamma → ∞.

    It needs the scores of all queries at once. ``prices`` (k,) are those of the last call.
    """

    couples_queries = True

    def __init__(self, sizes: Sizes, gamma: float | None = None):
        self.sizes, self.gamma = sizes, gamma
        self.prices: np.ndarray | None = None

    def __call__(self, scores: Tensor, key_weight: Tensor | None = None) -> Tensor:
        n, k = scores.shape[-2:]
        if self.gamma is not None:
            low, high = bounds(self.sizes, n, k)
            logits = self.gamma * scores
            weights = entropic_weights(lambda: iter([logits.double()]), n, k, low, high)
            self.prices = -weights.numpy() / self.gamma
            return (logits + weights.to(scores)).softmax(-1)
        planner = Planner(self.sizes, n, k)
        labels = planner.labels(lambda block: -scores[block].double().numpy(), [slice(0, n)], final=True)
        self.prices = planner.prices
        return torch.nn.functional.one_hot(torch.from_numpy(labels).long(), k).to(scores)


def entropic_weights(
    logits: Callable[[], Any], n: int, k: int, low: float, high: float, start: Tensor | None = None
) -> Tensor:
    """The logarithmic weights w (k,) such that the columns of softmax(logits + w) sum to ``low`` to ``high``.

    ``logits()`` yields blocks (b, k). The weights minimise the convex function Σ_i logsumexp(logits_i + w) - low Σ w⁺ +
    high Σ w⁻. Sinkhorn's alternating steps minimise it too, one column after another. Newton steps take a few passes
    where these take hundreds; a Sinkhorn step is made where a Newton step does not descend.
    """
    here = _Dual.at(np.zeros(k) if start is None else start.numpy().copy(), logits, n, low, high)
    for _ in range(MOST_STEPS):
        if np.abs(here.wrong).max() <= PRECISION * n:
            break
        with np.errstate(divide="ignore"):
            alternating = np.clip(0.0, *(here.w + np.log([low / here.sums, high / here.sums])))
        for tried in (*map(here.stepped, STEP_SIZES), alternating):
            there = _Dual.at(tried, logits, n, low, high)
            if there.value < here.value - ROUNDING * n:
                break
            if there.value < here.value + ROUNDING * n and np.abs(there.wrong).max() < np.abs(here.wrong).max() / 2:
                break
        else:
            break
        here = there
    return torch.from_numpy(here.w)


class _Dual(NamedTuple):
    """The convex function at one place."""

    w: np.ndarray  # (k,)
    value: float
    sums: np.ndarray  # (k,)
    curvature: np.ndarray  # (k, k)
    free: np.ndarray  # (k,) which weights are not held at zero, where the function has an edge
    wrong: np.ndarray  # (k,) the derivative in these
    side: np.ndarray  # (k,) the sign on which each weight stays in a Newton step; 0 if there is no edge

    @classmethod
    def at(cls, w: np.ndarray, logits: Callable[[], Any], n: int, low: float, high: float) -> "_Dual":
        """At weights w, all of which are first moved alike to where the function is least: shares stay as they are."""

        def edges(w):
            return high * np.maximum(-w, 0.0).sum(axis=-1) - low * np.maximum(w, 0.0).sum(axis=-1)

        moved = w - w[:, None] * (low < high)  # one weight is then at its edge
        w = moved[np.argmin(edges(moved) - n * w)]
        value = float(edges(w))
        sums, products = np.zeros(len(w)), np.zeros((len(w), len(w)))
        for block in logits():
            moved = block + torch.from_numpy(w)
            value += float(moved.logsumexp(-1).sum())
            shares = moved.softmax(-1).numpy()
            sums += shares.sum(axis=0)
            products += shares.T @ shares
        full = (w < 0) | ((w == 0) & (sums > high))
        side = np.where(full, -1, 1) * (low < high)
        free = full | (w > 0) | (sums < low) | (low == high)
        wrong = np.where(free, sums - np.where(full, high, low), 0.0)
        return cls(w, value, sums, np.diag(sums) - products, free, wrong, side)

    def stepped(self, size: float) -> np.ndarray:
        """A Newton step in which no weight passes an edge."""
        free = self.free
        step = np.zeros(len(free))
        step[free] = np.linalg.pinv(self.curvature[np.ix_(free, free)], rcond=1e-10, hermitian=True) @ self.wrong[free]
        there = self.w - size * step
        there[self.side * there < 0] = 0.0
        return there
