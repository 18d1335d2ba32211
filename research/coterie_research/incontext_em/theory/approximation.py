"""Sums of sigmoid units fitted to smooth maps (He et al., 2025, Lemmas 3.1, A.1-A.3), and softmax as hardmax (B.1).

One coordinate of a softmax over two alternatives with scores s and 0 is a sigmoid, so what follows are also sums of
coordinates of softmax units. The lemmas 3.1 and A.2 use all coordinates of a softmax at once, and fail: the coordinates
of Σ a_i softmax(A_i [x; 1]) add up to Σ a_i for every x, so that no such sum is nearer than R to f(x) = (x, x) on
[-R, R]. The networks read single coordinates (``pieces.units``) and do not need the lemmas. Every sum here holds on the
unit ball or interval; ``scaled`` carries it to another size.

Three ways to choose the units, each measured by ``coterie reproduce theory/fits``:

* *drawn*: the proof of Lemma A.1. Where f(v) = c + ∫ g(w) step(⟨w, (v, 1)⟩) dw, draw M units from |g| and give each the
  same weight. The error is that of a mean of M bounded terms: M^(-1/2), up to the logarithm that the supremum costs.
* *quadrature* (one dimension): the same units at equal quantiles instead of random ones.
* *fitted*: units spread by a rule, their coefficients by least squares. What the constructed networks use.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import torch
from torch import Tensor

# sigmoid(40) is 1 - 4e-18: in float64, the constant 1.
ALWAYS_ON = 40.0


@dataclass(frozen=True)
class SigmoidSum:
    """v ↦ Σ_m c_m sigmoid(⟨w_m, v⟩ + b_m), with weights (M, d), biases (M,) and coefficients (M,)."""

    weights: Tensor
    biases: Tensor
    coefficients: Tensor

    def __call__(self, v: Tensor) -> Tensor:
        return torch.sigmoid(v @ self.weights.mT + self.biases) @ self.coefficients

    @property
    def n_units(self) -> int:
        return len(self.coefficients)

    @property
    def total_variation(self) -> float:
        """Σ|c_m|: what the parameter norm of a network pays for this sum."""
        return float(self.coefficients.abs().sum())

    def scaled(self, argument: float, value: float) -> "SigmoidSum":
        """v ↦ value · f(v / argument)."""
        return replace(self, weights=self.weights / argument, coefficients=value * self.coefficients)


def _with_constant(weights: Tensor, biases: Tensor) -> tuple[Tensor, Tensor]:
    """One more unit, which is 1 everywhere: the a_0 of the paper's sums."""
    return (
        torch.cat([weights, weights.new_zeros(1, weights.shape[1])]),
        torch.cat([biases, biases.new_full((1,), ALWAYS_ON)]),
    )


def _least_squares(
    weights: Tensor,
    biases: Tensor,
    v: Tensor,
    target: Tensor,
    importance: Tensor | None = None,
    cutoff: float = 1e-12,
) -> SigmoidSum:
    """The coefficients that minimise Σ (importance · error)² on the points v.

    Singular values below ``cutoff`` times the largest count as zero: a larger cutoff buys smaller coefficients.
    """
    features = torch.sigmoid(v @ weights.mT + biases)
    if importance is not None:
        features, target = features * importance.unsqueeze(1), target * importance
    solved = torch.linalg.lstsq(features, target.unsqueeze(1), rcond=cutoff, driver="gelsd").solution
    return SigmoidSum(weights, biases, solved.squeeze(1))


def directions(n: int, d: int, generator: torch.Generator) -> Tensor:
    """n independent unit vectors of R^d."""
    v = torch.randn(n, d, dtype=torch.float64, generator=generator)
    return v / v.norm(dim=1, keepdim=True)


def ball_points(n: int, d: int, generator: torch.Generator, smallest: float = 0.0) -> Tensor:
    """Points for fitting and testing: a third uniform in the ball, a third with uniform log radius, a third on the rim.

    With ``smallest`` > 0 all of them lie in the shell between that radius and 1.
    """
    u = torch.rand(n, dtype=torch.float64, generator=generator)
    radius = (smallest**d + (1 - smallest**d) * u) ** (1 / d)
    third = n // 3
    radius[:third] = max(smallest, 1e-4) ** u[:third]
    radius[third : 2 * third] = 1.0
    return radius.unsqueeze(1) * directions(n, d, generator)


# --- one dimension -------------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def fitted_reciprocal(n_units: int, smallest: float) -> SigmoidSum:
    """1/x on [smallest, 1], the relative error fitted: steps at geometric places, each as wide as its place is far.

    The family of units looks the same at every scale, so a number of units per octave fixes the relative error, and the
    number needed grows with log(1/smallest), not with 1/smallest. Units get steeper as they get denser: that keeps them
    nearly independent and the coefficients moderate.
    """
    place = torch.logspace(math.log10(smallest), 0.0, n_units - 1, dtype=torch.float64)
    steepness = max(3.0, 0.6 * (n_units - 2) / math.log(1.0 / smallest))
    weights, biases = _with_constant((steepness / place).unsqueeze(1), torch.full_like(place, -steepness))
    x = torch.logspace(math.log10(smallest), 0.0, 2000 + 20 * n_units, dtype=torch.float64)
    return _least_squares(weights, biases, x.unsqueeze(1), 1.0 / x, importance=x)


@lru_cache(maxsize=64)
def fitted_square(n_units: int) -> SigmoidSum:
    """t² on [-1, 1]."""
    place = torch.linspace(-1.0, 1.0, n_units - 1, dtype=torch.float64)
    weights, biases = _with_constant(torch.full((n_units - 1, 1), 3.0, dtype=torch.float64), -3.0 * place)
    t = torch.cos(torch.linspace(0.0, math.pi, 2000 + 20 * n_units, dtype=torch.float64))
    return _least_squares(weights, biases, t.unsqueeze(1), t.square())


def reciprocal_steps(n_units: int, smallest: float, steepness: float, generator: torch.Generator | None) -> SigmoidSum:
    """1/x = 1/smallest - ∫ t⁻² step(x - t) dt over [smallest, 1]: units drawn, or at quantiles without a generator.

    The mass of t⁻² between smallest and t is F(t) = 1/smallest - 1/t, so t = 1/(1/smallest - u · F(1)).
    ``steepness`` · t⁻¹ is the slope of the step at t.
    """
    n = n_units - 1
    if generator is None:
        u = (torch.arange(n, dtype=torch.float64) + 0.5) / n
    else:
        u = torch.rand(n, dtype=torch.float64, generator=generator)
    mass = 1.0 / smallest - 1.0
    place = 1.0 / (1.0 / smallest - u * mass)
    weights, biases = _with_constant((steepness / place).unsqueeze(1), torch.full_like(place, -steepness))
    coefficients = torch.full((n_units,), -mass / n, dtype=torch.float64)
    coefficients[-1] = 1.0 / smallest
    return SigmoidSum(weights, biases, coefficients)


# --- the norm in any dimension -------------------------------------------------------------------------------------


def drawn_norm(n_units: int, d: int, steepness: float, generator: torch.Generator) -> SigmoidSum:
    """‖v‖ on the unit ball, by the proof of Lemma A.1 with its measure written out.

    ‖v‖ = E|⟨θ, v⟩| / E|θ_1| over uniform unit vectors θ, and |t| = 1 + ∫ sign(s) step(t - s) ds over [-1, 1]. So draw
    θ and s uniformly; the mass is 2 / E|θ_1|, with E|θ_1| = Γ(d/2) / (√π Γ((d+1)/2)). A step is a sigmoid of the given
    steepness.
    """
    n = n_units - 1
    mean_projection = math.exp(math.lgamma(d / 2) - math.lgamma((d + 1) / 2)) / math.sqrt(math.pi)
    theta = directions(n, d, generator)
    s = 2.0 * torch.rand(n, dtype=torch.float64, generator=generator) - 1.0
    weights, biases = _with_constant(steepness * theta, -steepness * s)
    coefficients = torch.cat([2.0 * s.sign() / n, torch.ones(1, dtype=torch.float64)]) / mean_projection
    return SigmoidSum(weights, biases, coefficients)


def _spread_units(n_units: int, d: int, generator: torch.Generator, steepest: float) -> tuple[Tensor, Tensor]:
    """Directions uniform, slopes from 1 to ``steepest`` with uniform logarithm, steep steps near the origin only."""
    n = n_units - 1
    slope = steepest ** torch.rand(n, dtype=torch.float64, generator=generator)
    place = (2.0 * torch.rand(n, dtype=torch.float64, generator=generator) - 1.0) * (4.0 / slope).clamp(max=1.0)
    return _with_constant(slope.unsqueeze(1) * directions(n, d, generator), -slope * place)


def fitted_radial(
    f: Callable[[Tensor], Tensor], n_units: int, d: int, smallest: float = 0.0, seed: int = 0, cutoff: float = 1e-9
) -> SigmoidSum:
    """v ↦ f(‖v‖) on the shell from ``smallest`` to 1 (the ball, for 0): random units, coefficients by least squares.

    The steepest unit resolves ``smallest``, or, at the tip of a cone, one n_units-th of the radius.
    """
    generator = torch.Generator().manual_seed(seed)
    weights, biases = _spread_units(n_units, d, generator, max(4.0 / smallest if smallest else n_units, 4.0))
    v = ball_points(2000 + 16 * n_units, d, generator, smallest)
    return _least_squares(weights, biases, v, f(v.norm(dim=1)), cutoff=cutoff)


@lru_cache(maxsize=64)
def fitted_norm(n_units: int, d: int, seed: int = 0) -> SigmoidSum:
    """‖v‖ on the unit ball. With this cutoff Σ|c| stays near 10, as Lemma A.1 has it, and the error is no larger."""
    return fitted_radial(lambda r: r, n_units, d, seed=seed, cutoff=1e-5)


def largest_error(f: Callable[[Tensor], Tensor], g: Callable[[Tensor], Tensor], v: Tensor) -> float:
    """The supremum of |f - g| over the points v, in blocks."""
    return max(float((f(part) - g(part)).abs().max()) for part in v.split(4096))


def norm_of(v: Tensor) -> Tensor:
    return v.norm(dim=-1)


# --- softmax and hardmax -------------------------------------------------------------------------------------------


def hardmax(v: Tensor) -> Tensor:
    """Weight 1, shared by all entries that equal the largest."""
    best = (v == v.amax(-1, keepdim=True)).to(v.dtype)
    return best / best.sum(-1, keepdim=True)


def hardmax_bound(v: Tensor, beta: float) -> Tensor:
    """Lemma B.1's bound on ‖softmax(βv) - hardmax(v)‖₂, with Δ the gap from the best to the best of the *others*.

    (As printed the gap is taken inside the set of maximisers, where it is zero.)
    """
    best = v.amax(-1, keepdim=True)
    top = v == best
    n_top = top.sum(-1).to(v.dtype)
    rest = v.shape[-1] - n_top
    gap = best.squeeze(-1) - v.masked_fill(top, -torch.inf).amax(-1)
    return torch.sqrt(rest + rest.square() / n_top**3) * torch.exp(-beta * gap)
