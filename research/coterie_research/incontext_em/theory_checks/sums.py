"""Lemmas A.1-A.3: sums of sigmoid units for 1/x, t², ‖v‖ and 1/‖v‖."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from coterie_research.incontext_em.theory import approximation
from coterie_research.incontext_em.theory_checks import pictures
from coterie_research.incontext_em.theory_checks.instances import geometric
from coterie_research.records import ROUNDING, curve, experiment


def _generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(1000 + seed)


def _one_over(v: Tensor) -> Tensor:
    return 1.0 / v.norm(dim=1)


def _sums(kind: str, m: int, d: int, seed: int) -> approximation.SigmoidSum:
    """Sums of m units by kind; 1/x lives on [0.05, 1], 1/‖v‖ on the shell from 1/4 to 1."""
    if kind == "1/‖v‖, fitted":
        return approximation.fitted_radial(lambda r: 1.0 / r, m, d, 0.25, seed)
    makers: dict[str, Callable[[], approximation.SigmoidSum]] = {
        "1/x, drawn": lambda: approximation.reciprocal_steps(m, 0.05, 2.0 * m, _generator(seed)),
        "1/x, quantiles": lambda: approximation.reciprocal_steps(m, 0.05, 2.0 * m, None),
        "1/x, fitted": lambda: approximation.fitted_reciprocal(m, 0.05),
        "t² on [-1, 1], fitted": lambda: approximation.fitted_square(m),
        "‖v‖, drawn": lambda: approximation.drawn_norm(m, d, 2.0 * m, _generator(seed)),
        "‖v‖, fitted": lambda: approximation.fitted_norm(m, d, seed),
    }
    return makers[kind]()


def _fit_curve(kind: str, units: Sequence[int], f: Callable, v: Tensor, seeds: int, floor: float = ROUNDING) -> dict:
    d = v.shape[1]
    errors, masses = [], []
    for m in units:
        sums = [_sums(kind, m, d, seed) for seed in range(seeds)]
        errors.append(geometric([approximation.largest_error(one, f, v) for one in sums]))
        masses.append(geometric([one.total_variation for one in sums]))
    return curve(kind if d == 1 else f"{kind}, d = {d}", units, errors, floor, mass=masses)


@experiment("theory/fits", pictures.fits)
def fits(quick: bool) -> dict[str, Any]:
    """Largest error of sums of M sigmoid units for 1/x, t², ‖v‖ and 1/‖v‖, and the mass Σ|c| that they need."""
    drawn, fitted = 2 if quick else 20, 1 if quick else 2
    units = [8, 16, 32, 64] if quick else [8, 16, 32, 64, 128, 256, 512]
    x = torch.logspace(math.log10(0.05), 0.0, 4001, dtype=torch.float64).unsqueeze(1)
    t = torch.linspace(-1.0, 1.0, 4001, dtype=torch.float64).unsqueeze(1)
    line = [_fit_curve(f"1/x, {kind}", units, _one_over, x, 1) for kind in ("quantiles", "fitted")]
    line.insert(0, _fit_curve("1/x, drawn", units, _one_over, x, drawn))
    line.append(_fit_curve("t² on [-1, 1], fitted", units, lambda v: v[:, 0].square(), t, 1, floor=2e-7))
    ball, shell = [], []
    for d in (2,) if quick else (2, 3, 5):
        v = approximation.ball_points(9000, d, _generator(77))
        ball.append(_fit_curve("‖v‖, drawn", units, approximation.norm_of, v, drawn))
        ball.append(_fit_curve("‖v‖, fitted", units, approximation.norm_of, v, fitted))
        v = approximation.ball_points(9000, d, _generator(78), smallest=0.25)
        shell.append(_fit_curve("1/‖v‖, fitted", units, _one_over, v, fitted))
    panels = {"1/x on [0.05, 1]": line, "‖v‖ on the unit ball": ball, "1/‖v‖ on the shell from 1/4 to 1": shell}
    return {"drawn": drawn, "fitted": fitted, "panels": panels}
