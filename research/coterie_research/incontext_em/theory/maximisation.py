"""The Maximisation step (the paper's name for new assignments from new centres) as layers.

Each function returns blocks that read ``center`` and replace ``label`` by the (nearly) one-hot choice of the nearest
centre. They leave ``center`` and all intermediate values zero, as the Expectation step wants to find them.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from coterie_research.incontext_em.theory import pieces
from coterie_research.incontext_em.theory.approximation import SigmoidSum
from coterie_research.incontext_em.theory.context import Rows
from coterie_research.incontext_em.theory.modules import Attention, Block


def _hardmax(rows: Rows, q: Tensor, k: Tensor) -> pieces.Heads:
    """Stage 4: label ← Σ_a softmax weight of token a · e_a.

    Token a < k must score β(B - cost_a) and tokens ≥ k zero. With β = C log N and B - cost ≥ 1, the weight that goes
    to tokens ≥ k is at most N^(1-C), and to centres that are worse by a gap Δ, k N^(-CΔ) (Lemma B.1). The paper
    prints +cost, which picks the farthest centre; -cost alone would lose to the N - k tokens with score zero; hence B.
    """
    return pieces.head(q, k, rows.moving(rows.of_center, rows.label))


def by_units(
    rows: Rows,
    n_points: int,
    costs: Sequence[tuple[SigmoidSum, slice]],
    largest_cost: float,
    sharpness: float,
    pick_sharpness: float | None,
) -> list[Block]:
    """Theorems 3.1 and 3.2, stages 2 to 4. Stage 1, the k copies of x, stands at the end of the Expectation step.

    2. Copy a ← x - μ_a (``pieces.subtracted_center``): by softmax heads of strength ``pick_sharpness`` · log N, or for
       None by un-normalised ones, without error.
    3. ``distance_a`` ← Σ over ``costs`` of a sum of sigmoid units of a part of copy a: the norm of the whole copy, or
       the square of each of its coordinates. Then copies, label and center are cleared.
    4. ``_hardmax`` with cost = distance and B above all of them. Then distance is cleared.
    """
    marker = rows.reading(rows.of_center)
    if pick_sharpness is None:
        pick: Attention = pieces.unnormalised(*[pieces.subtracted_center(rows, a, 1.0) for a in range(rows.k)])
    else:
        strength = pick_sharpness * math.log(n_points)
        pick = pieces.softmax(*[pieces.subtracted_center(rows, a, strength) for a in range(rows.k)])
    measure = []
    for a in range(rows.k):
        target = slice(rows.distance.start + a, rows.distance.start + a + 1)
        for total, part in costs:
            source = slice(rows.copy_of(a).start + part.start, rows.copy_of(a).start + part.stop)
            measure.append(pieces.units(rows, total, source, target, n_points))
    beta = sharpness * math.log(n_points)
    queries = rows.reading(rows.distance, -beta)
    queries[:, rows.one] = beta * (1.25 * largest_cost + 1.0)
    return [
        pieces.block(rows, pick),
        pieces.block(rows, pieces.softmax(*measure), pieces.cleared(rows, rows.copy, rows.label, rows.center)),
        pieces.block(rows, pieces.softmax(_hardmax(rows, marker, queries)), pieces.cleared(rows, rows.distance)),
    ]


def exact(rows: Rows, n_points: int, radius: float, sharpness: float) -> list[Block]:
    """Without any approximation in M: ‖x - μ_a‖² = ‖x‖² - (2⟨μ_a, x⟩ - ‖μ_a‖²), and ‖x‖² does not depend on a.

    1. Un-normalised attention with V = marker and Q = center: with K = 2x, token j collects Σ_a e_a 2⟨μ_a, x_j⟩ as
       ``inner`` (center is zero on tokens ≥ k); with K = center, token j < k collects ⟨μ_a, μ_j⟩ as ``gram``. FC,
       gated: token a keeps ``square`` = ‖μ_a‖². No product exceeds radius², so the gate's limit lies above that.
    2. ``_hardmax`` with Q = (marker, square), K = β(inner + B, -1): token a scores β(B + 2⟨μ_a, x⟩ - ‖μ_a‖²), tokens
       ≥ k zero. As 2⟨μ, x⟩ - ‖μ‖² ≥ -3 radius², B = 4 radius² + 1 will do.
    """
    k, markers = rows.k, rows.reading(rows.of_center)
    to_inner = rows.moving(rows.of_center, rows.inner)
    to_gram = rows.moving(rows.of_center, rows.gram)
    center = rows.reading(rows.center)
    products = pieces.unnormalised(
        pieces.head(center, rows.reading(rows.x, 2.0), to_inner), pieces.head(center, center, to_gram)
    )
    to_square = rows.reading(rows.square).mT.expand(rows.width, k)
    beta = sharpness * math.log(n_points)
    queries = torch.cat([rows.reading(rows.inner, beta), rows.reading(rows.one, -beta)])
    queries[:k, rows.one] = beta * (4.0 * radius**2 + 1.0)
    keys = torch.cat([markers, rows.reading(rows.square)])
    return [
        pieces.block(
            rows,
            products,
            pieces.gated(rows, rows.reading(rows.gram), to_square, 2.0 * radius**2 + 1.0),
            pieces.cleared(rows, rows.gram, rows.label, rows.center),
        ),
        pieces.block(
            rows, pieces.softmax(_hardmax(rows, keys, queries)), pieces.cleared(rows, rows.inner, rows.square)
        ),
    ]
