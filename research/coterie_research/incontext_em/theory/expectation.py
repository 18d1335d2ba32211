"""The Expectation step (the paper's name for new centres from old assignments) as layers.

Each function returns blocks that turn ``center``, which must be zero before, into the means of the clusters named by
``label``, and end by writing k copies of x, stage 1 of the Maximisation step, where ``copies`` says so.
"""

import math

import torch

from coterie_research.incontext_em.theory import approximation, pieces
from coterie_research.incontext_em.theory.context import Rows
from coterie_research.incontext_em.theory.modules import Block


def centred(rows: Rows) -> Block:
    """x ← x - mean of all points; center ← 0. Once, before the first iteration.

    Lloyd's algorithm commutes with translations, so no assignment changes. The start centres are not needed: the start
    assignment is what the first Expectation step reads.
    """
    attention = pieces.softmax(pieces.mean_of_all(rows, rows.x, rows.x, -1.0))
    return pieces.block(rows, attention, pieces.cleared(rows, rows.center))


def _copies(rows: Rows) -> list[pieces.Hidden]:
    """Stage 1 of the Maximisation step: x into each of the k copies, in one FC layer (the paper uses 2k)."""
    return [pieces.copied(rows, rows.x, *[rows.copy_of(a) for a in range(rows.k)])]


def _cluster_mean(rows: Rows, strength: float) -> pieces.Heads:
    """Theorem 3.1's first head: token j < k scores ``strength`` · (label of i)_j, so it collects the mean of cluster j.

    With strength C log N a point of the cluster has N^C times the weight of any other, and the mean is off by
    (others' mean - μ_j) · m / (n_j N^C + m), where m = N - n_j: N^-C for clusters that hold a fixed share. A token
    ≥ k scores zero everywhere and collects the mean of all points, which is zero for centred ones.
    """
    return pieces.head(
        rows.reading(rows.label, strength), rows.reading(rows.of_center), rows.moving(rows.x, rows.center)
    )


def by_softmax(rows: Rows, n_points: int, sharpness: float, copies: bool = True) -> list[Block]:
    """Theorem 3.1, for points that ``centred`` has centred. The second head is then not needed."""
    attention = pieces.softmax(_cluster_mean(rows, sharpness * math.log(n_points)))
    return [pieces.block(rows, attention, *(_copies(rows) if copies else []))]


def as_printed(rows: Rows, n_points: int, sharpness: float = 2.0, copies: bool = True) -> list[Block]:
    """Theorem 3.1 as B.1 has it (its V₂ with the sign that its text needs), to measure what it does.

    The second head takes the mean of all points from every token: from those ≥ k, where it belongs, and from the k
    centres too. So centre j becomes μ_j - mean, whatever N is, unless the points are centred.
    """
    attention = pieces.softmax(
        _cluster_mean(rows, sharpness * math.log(n_points)), pieces.mean_of_all(rows, rows.x, rows.center, -1.0)
    )
    return [pieces.block(rows, attention, *(_copies(rows) if copies else []))]


def by_reciprocal(
    rows: Rows, n_points: int, n_units: int, smallest_share: float | None = None, copies: bool = True
) -> list[Block]:
    """Theorem 3.2: means as sums times an approximated 1/count, in three layers. Needs no centring.

    1. A uniform head gives every token the shares f_a = n_a / N. (The paper divides by D: the softmax runs over the
       N tokens.) FC, gated: token a keeps f_a as ``own_share``; shares are cleared. (The paper spends 2k heads
       on this, with scores N², whose exponential exceeds float64 from N = 27 on.)
    2. n_units heads: ``reciprocal`` ← r(own_share), where r(f) ≈ 1/f on [smallest_share, 1]. FC, gated: token a < k
       gets ``inverse`` = r(f_a) e_a, all other tokens 0. On tokens ≥ k, own_share is 0 and r(0) is some number below
       the gate's limit. Any cluster that is not empty has a share of 1/N at least, the default; then Σ|c| and the
       limit grow with N. With the share α that the paper's class of mixtures guarantees they do not.
    3. Un-normalised attention with V = x/N, Q = label, K = inverse: token j < k collects
       Σ_i x_i (label_i)_j r(f_j) / N = (f_j r(f_j)) · μ_j. So its relative error is that of r, times ‖μ_j‖.

    The paper multiplies label by 1/count on every token with M more softmax heads; putting 1/count on the looking
    token needs none.
    """
    r = approximation.fitted_reciprocal(n_units, smallest_share or 1.0 / n_points)
    grid = torch.linspace(0.0, 1.0, 4001, dtype=torch.float64).unsqueeze(1)
    limit = 2.0 * float(r(grid).abs().max())
    k = rows.k
    to_own = rows.reading(rows.own_share).mT.expand(rows.width, k)
    shares = pieces.block(
        rows,
        pieces.softmax(pieces.mean_of_all(rows, rows.label, rows.share)),
        pieces.gated(rows, rows.reading(rows.share), to_own, 2.0),
        pieces.cleared(rows, rows.share),
    )
    inverses = pieces.block(
        rows,
        pieces.softmax(pieces.units(rows, r, rows.own_share, rows.reciprocal, n_points)),
        pieces.gated(rows, rows.reading(rows.reciprocal).expand(k, -1), rows.reading(rows.inverse).mT, limit),
        pieces.cleared(rows, rows.own_share, rows.reciprocal),
    )
    sums = pieces.head(
        rows.reading(rows.label), rows.reading(rows.inverse), rows.moving(rows.x, rows.center, 1.0 / n_points)
    )
    means = pieces.block(
        rows,
        pieces.unnormalised(sums),
        pieces.cleared(rows, rows.inverse),
        *(_copies(rows) if copies else []),
    )
    return [shares, inverses, means]
