"""The whole networks: tau Lloyd iterations on the matrix H, as explicit weights.

========================  =====================  =========================  ==================  ===================
network                   Expectation            Maximisation               layers              the paper's
========================  =====================  =========================  ==================  ===================
``transformer``           softmax heads          units for the distance     1 + 4 tau           tau (3 + 3k)
``transformer_plus``      units for 1/count      units for the distance     1 + 6 tau           tau (7 + 3k)
``exact_transformer_plus``  softmax heads        products                   1 + 3 tau           -
========================  =====================  =========================  ==================  ===================

The paper's counts allow for copies of x made one by one and for identity layers; layers that do nothing can be
appended at will.
"""

from dataclasses import dataclass

import torch

from coterie_research.incontext_em.theory import approximation, expectation, maximisation, pieces
from coterie_research.incontext_em.theory.approximation import SigmoidSum
from coterie_research.incontext_em.theory.context import Rows
from coterie_research.incontext_em.theory.modules import Block, Transformer, TransformerPlus


@dataclass(frozen=True)
class Size:
    """What the weights depend on: N, d, k, and a radius that holds all points, seen from their mean."""

    n_points: int
    d: int
    k: int
    radius: float

    @property
    def reach(self) -> float:
        """No point is farther than this from any mean of points."""
        return 2.0 * self.radius


@dataclass(frozen=True)
class ConstructionSettings:
    """The free constants of the theorems.

    ``units`` is M, the units of each approximated function. ``measure`` is what is approximated in the Maximisation
    step: "norm", ‖x - μ‖ in d dimensions as in the paper, or "square", the d squares of its coordinates, each by
    M // d units. The three sharpnesses are the C of C log N where a softmax stands for the mean of a cluster, for
    one marked token, and for the hardmax. Points that lie between two centres need the last one large.
    ``smallest_share`` is the least share of the points that a cluster of Transformer+ may have; None is 1/N.
    """

    units: int = 256
    measure: str = "norm"
    mean_sharpness: float = 100.0
    pick_sharpness: float = 100.0
    hardmax_sharpness: float = 1e8
    smallest_share: float | None = None
    seed: int = 0


def costs(size: Size, settings: ConstructionSettings) -> list[tuple[SigmoidSum, slice]]:
    """Sums of units, and the coordinates of x - μ that each reads, which add up to the cost of a centre."""
    if settings.measure == "norm":
        unit = approximation.fitted_norm(settings.units, size.d, settings.seed)
        return [(unit.scaled(size.reach, size.reach), slice(0, size.d))]
    if settings.measure != "square":
        raise ValueError(f"measure must be 'norm' or 'square', got {settings.measure!r}.")
    unit = approximation.fitted_square(max(settings.units // size.d, 3))
    return [(unit.scaled(size.reach, size.reach**2), slice(c, c + 1)) for c in range(size.d)]


def _maximisation(rows: Rows, size: Size, settings: ConstructionSettings, plus: bool) -> list[Block]:
    return maximisation.by_units(
        rows,
        size.n_points,
        costs(size, settings),
        size.reach if settings.measure == "norm" else size.reach**2,
        settings.hardmax_sharpness,
        None if plus else settings.pick_sharpness,
    )


def transformer(size: Size, tau: int, settings: ConstructionSettings | None = None) -> Transformer:
    """Theorem 3.1: softmax attention only."""
    settings, rows = settings or ConstructionSettings(), Rows(size.d, size.k)
    iteration = expectation.by_softmax(rows, size.n_points, settings.mean_sharpness)
    iteration += _maximisation(rows, size, settings, plus=False)
    return Transformer([expectation.centred(rows)] + tau * iteration, rows.reading(rows.label))


def transformer_plus(size: Size, tau: int, settings: ConstructionSettings | None = None) -> TransformerPlus:
    """Theorem 3.2: un-normalised attention where it helps. Its first layer only clears the start centres."""
    settings, rows = settings or ConstructionSettings(), Rows(size.d, size.k)
    iteration = expectation.by_reciprocal(rows, size.n_points, settings.units, settings.smallest_share)
    iteration += _maximisation(rows, size, settings, plus=True)
    no_heads = torch.zeros(0, rows.width, rows.width, dtype=torch.float64)
    start = pieces.block(rows, pieces.SoftmaxAttention(no_heads, no_heads, no_heads), pieces.cleared(rows, rows.center))
    return TransformerPlus([start] + tau * iteration, rows.reading(rows.label))


def exact_transformer_plus(size: Size, tau: int, settings: ConstructionSettings | None = None) -> TransformerPlus:
    """⟨μ, x⟩ and ‖μ‖² from un-normalised attention: no approximation, so no M."""
    settings, rows = settings or ConstructionSettings(), Rows(size.d, size.k)
    iteration = expectation.by_softmax(rows, size.n_points, settings.mean_sharpness, copies=False)
    iteration += maximisation.exact(rows, size.n_points, size.radius, settings.hardmax_sharpness)
    return TransformerPlus([expectation.centred(rows)] + tau * iteration, rows.reading(rows.label))
