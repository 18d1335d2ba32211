"""Appendix A.5.1 of Clarkson et al. (2025) as printed: another construction of robust k-means than Table 1's row.

A point is (ℓ(x), y, ŷ) and a centre (ℓ(c), e_j, e_j), of width d + 2k + 2, with ℓ(x) = (x, ‖x‖², -1/2). The matrix π
swaps the last two coordinates of ℓ and doubles all, so that ⟨ℓ(c), π ℓ(x)⟩ = -‖x - c‖². A layer has five triples
(Q, K, V):

1. y ← y + the nearest centre's e_j: limiting attention to the centres;
2. y, ŷ ← y, ŷ minus their old values: limiting attention of every point to itself;
3. ŷ ← ŷ - ‖x - c‖² + δ y: attention to the centres with the identity instead of a softmax;
4. c ← c + Σ weight · x, with weights from ŷ by any normaliser;
5. c, ‖c‖² ← 0 before: limiting attention of every centre to itself. A quadratic unit then writes ‖c‖² again.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from coterie.attention import Identity, Limiting, Linear, Normaliser, Softmax, Sparsemax, TopK, attend, dot_scores
from coterie.kmeans import reference
from coterie_research.kmeans_transformers.experiments import blobs
from coterie_research.records import experiment

LAYERS, GAMMA, TOP, DELTA = 8, 0.7, 7, 1e4
NORMALISERS: dict[str, Normaliser] = {
    "softmax": Softmax(GAMMA),
    "sparsemax": Sparsemax(GAMMA),
    "topk": TopK(TOP, GAMMA),
    "linear": Linear(),
}


class Triple(NamedTuple):
    q: Tensor
    k: Tensor
    v: Tensor

    def __call__(self, queries: Tensor, keys: Tensor, normaliser: Normaliser) -> Tensor:
        return attend(queries @ self.q.mT, keys @ self.k.mT, keys @ self.v.mT, dot_scores, normaliser)


def lifted(x: Tensor) -> Tensor:
    """ℓ(x) of every row."""
    return torch.cat([x, x.square().sum(1, keepdim=True), torch.full_like(x[:, :1], -0.5)], 1)


def triples(d: int, k: int, delta: float = DELTA) -> list[Triple]:
    """The five triples, for tokens as rows; each matrix is square, of width d + 2k + 2."""
    p, width = d + 2, d + 2 + 2 * k

    def only(start: int, stop: int) -> Tensor:
        kept = torch.zeros(width, dtype=torch.float64)
        kept[start:stop] = 1.0
        return torch.diag(kept)

    swap = 2 * only(0, d)
    swap[d, d + 1] = swap[d + 1, d] = 2.0
    members = only(p + k, width)
    return [
        Triple(swap, only(0, p), only(p, p + k)),
        Triple(swap, only(0, p), -only(p, width)),
        Triple(swap + delta * only(p, width), only(0, p + k), members),
        Triple(members, members, only(0, d)),
        Triple(members, members, -only(0, d + 1)),
    ]


def layers(x: np.ndarray, c: np.ndarray, normaliser: Normaliser, n: int) -> Iterator[tuple[np.ndarray, Tensor]]:
    """The centres after each of ``n`` layers, with the rows ŷ (n, k) from which they came."""
    d, k = c.shape[1], len(c)
    choose, clear, measure, collect, forget = triples(d, k)
    eye, limit = torch.eye(k, dtype=torch.float64), Limiting(rounding=1e-9)
    points = torch.cat([lifted(torch.from_numpy(x)), torch.zeros(len(x), 2 * k, dtype=torch.float64)], 1)
    centers = torch.cat([lifted(torch.from_numpy(c)), eye, eye], 1)
    for _ in range(n):
        points = points + choose(points, centers, limit) + clear(points, points, limit)
        points = points + measure(points, centers, Identity())
        centers = centers + collect(centers, points, normaliser) + forget(centers, centers, limit)
        centers[:, d] = centers[:, :d].square().sum(1)
        yield centers[:, :d].numpy().copy(), points[:, d + 2 + k :]


def _linear(x: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Algorithm 5 with σ_lin: a member's weight is its share of the squared distances, so that far ones weigh most."""
    score, label = reference.scores(x, c), reference.labels(x, c)
    return np.stack([score[label == j, j] @ x[label == j] / score[label == j, j].sum() for j in range(len(c))])


@experiment("kmeans/robust", seed=0)
def robust(quick: bool) -> dict[str, Any]:
    """Compare A.5.1 as printed with Algorithm 5, and measure what its linear normaliser does."""
    instances = 2 if quick else 60
    rng = np.random.default_rng(0)
    deviation = {name: {"layers": 0, "largest": 0.0} for name in NORMALISERS}
    smallest, from_lloyd = [], []
    for _ in range(instances):
        n, d, k = int(rng.integers(40, 300)), int(rng.integers(2, 9)), int(rng.integers(2, 8))
        x, start = blobs(rng, n, d, k)
        for name, normaliser in NORMALISERS.items():
            plain = start
            for centers, _ in layers(x, start, normaliser, LAYERS):
                if len(np.unique(reference.labels(x, plain))) < k:
                    break  # plain algorithms are not defined there
                plain = _linear(x, plain) if name == "linear" else reference.robust(x, plain, name, GAMMA, TOP)
                deviation[name]["layers"] += 1
                deviation[name]["largest"] = max(deviation[name]["largest"], float(abs(centers - plain).max()))
        hat = next(layers(x, start, Softmax(GAMMA), 1))[1]
        weight = hat / hat.sum(0)  # σ_lin of each centre's column
        smallest.append(float(weight.min()))
        from_lloyd.append(float(abs(weight.mT.numpy() @ x - reference.lloyd(x, start)).max()))
    return {
        "instances": instances,
        "gamma": GAMMA,
        "delta": DELTA,
        "about": "largest |deviation| of a centre's coordinate from Algorithm 5, over layers and instances",
        "rows": deviation,
        "linear": {"smallest_weight": smallest, "largest_distance_from_lloyd": from_lloyd},
    }
