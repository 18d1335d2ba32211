"""Checks of the theorems: errors of the steps, of softmax as hardmax and of sums of sigmoid units; whole networks."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from coterie_research.incontext_em.theory import approximation, expectation, maximisation, pictures
from coterie_research.incontext_em.theory.comparison import (
    Comparison,
    compare,
    distances,
    lloyd,
    means,
    one_hot,
    size_of,
)
from coterie_research.incontext_em.theory.construction import (
    ConstructionSettings,
    Size,
    costs,
    exact_transformer_plus,
    transformer,
    transformer_plus,
)
from coterie_research.incontext_em.theory.context import Rows, context
from coterie_research.incontext_em.theory.modules import TransformerPlus, parameter_norm
from coterie_research.records import ROUNDING, curve, experiment


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


def _center_error(x: Tensor, blocks: Callable[[Rows], list], centre: bool = False) -> float:
    """The largest ‖center - true mean‖ after the blocks, the labels being the nearest of three of the points."""
    labels = lloyd(x, x[:3], 0)[0].labels
    rows = Rows(x.shape[1], 3)
    h = context(x, torch.zeros_like(x[:3]), labels)
    if centre:
        h = expectation.centred(rows)(h)
    true = means(h[:, rows.x], labels, 3)
    for block in blocks(rows):
        h = block(h)
    return float((h[:3, rows.center] - true).norm(dim=1).max())


@experiment("theory/expectation_error", pictures.expectation_error)
def expectation_error(quick: bool) -> dict[str, Any]:
    """Error of the new centres against N (as printed, and corrected with three temperatures) and against M."""
    seeds = range(4 if quick else 20)
    sizes = [2**power for power in (range(6, 10) if quick else range(6, 14))]
    units = [8, 16, 32, 64] if quick else [8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256]

    def error(blocks: Callable[[Rows], list], n: int, shift: float = 5.0, centre: bool = False) -> float:
        return geometric([_center_error(mixture(n, seed, shift=shift)[0], blocks, centre) for seed in seeds])

    def over_n(label: str, step: Callable[[Rows, int], list], shift: float = 5.0, centre: bool = False) -> dict:
        return curve(label, sizes, [error(lambda rows, n=n: step(rows, n), n, shift, centre) for n in sizes])  # type: ignore[misc]

    def over_m(n: int) -> dict:
        step = partial(expectation.by_reciprocal, n_points=n)
        return curve(f"Transformer+, N = {n}", units, [error(partial(step, n_units=m), n) for m in units])

    printed = partial(expectation.as_printed, sharpness=2.0)
    against_n = [
        over_n("as printed, C = 2, mixture away from 0", printed),
        over_n("as printed, C = 2, mixture with mean 0", printed, shift=0.0),
        *(over_n(f"corrected, C = {c}", partial(expectation.by_softmax, sharpness=c), centre=True) for c in (1, 2, 3)),
        over_n("Transformer+, M = 64", partial(expectation.by_reciprocal, n_units=64)),
    ]
    against_m = [over_m(n) for n in ([200] if quick else [200, 2000])]
    record = {"seeds": len(seeds), "against_n": against_n, "against_m": against_m}
    return record


def _maximised(x: Tensor, centers: Tensor, settings: ConstructionSettings) -> tuple[float, float, float]:
    """Distance error as a share of the reach, ‖labels - one-hot‖₂, and the share of points with another label."""
    size, k = size_of(x, len(centers)), len(centers)
    rows, power = Rows(x.shape[1], k), 2 if settings.measure == "square" else 1
    h = context(x, centers, torch.zeros(len(x), dtype=torch.long))
    h[:, rows.copy] = x.repeat(1, k)
    first, second, third = maximisation.by_units(
        rows, len(x), costs(size, settings), size.reach**power, settings.hardmax_sharpness, None
    )
    h = second(first(h))
    true = distances(x, centers)
    error = float((h[:, rows.distance].clamp(min=0) ** (1 / power) - true).abs().max()) / size.reach
    labels = third(h)[:, rows.label]
    off = float(torch.linalg.matrix_norm(labels - one_hot(true.argmin(1), k), ord=2))
    return error, off, float((labels.argmax(1) != true.argmin(1)).to(x).mean())


@experiment("theory/maximisation_error", pictures.maximisation_error)
def maximisation_error(quick: bool) -> dict[str, Any]:
    """Error of distances and of new assignments against M: norms in d = 2, 3 and 5, and squares."""
    units = [16, 32, 64] if quick else [16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512]
    cases = [("norm", 2), ("norm", 3), ("norm", 5), ("square", 2), ("square", 5)]
    kept = {"distance": [], "off": [], "differ": []}  # type: ignore[var-annotated]
    record: dict[str, Any] = {"n": 200, "k": 3, "instances": 5 if quick else 20, **kept}
    for measure, d in cases[::3] if quick else cases:
        found = []
        for m in units:
            each = [
                _maximised(x, lloyd(x, start, 1)[1].centers, ConstructionSettings(units=m, measure=measure))
                for _, x, start in instances(record["instances"], d=d, tau=1)
            ]
            found.append(np.array(each).mean(axis=0))
        floor = 1e-4 if measure == "square" else ROUNDING  # below it, fitted squares are as good as float64 allows
        for position, name in enumerate(("distance", "off", "differ")):
            record[name].append(curve(f"{measure}, d = {d}", units, [row[position] for row in found], floor))
    return record


@experiment("theory/hardmax_error", pictures.hardmax_error)
def hardmax_error(quick: bool) -> dict[str, Any]:
    """Softmax with temperature C log N against hardmax: all N entries competing, and in the layer, only k centres."""
    sizes = [2**power for power in (range(5, 9) if quick else range(5, 13))]
    entries, layer, bounds = [], [], []
    for c in (1, 2, 3):
        vectors = [torch.cat([torch.ones(1), torch.zeros(n - 1)]).to(torch.float64) for n in sizes]
        betas = [c * math.log(n) for n in sizes]
        errors = [float((torch.softmax(b * v, 0) - approximation.hardmax(v)).norm()) for b, v in zip(betas, vectors)]
        entries.append(curve(f"C = {c}", sizes, errors))
        bound = [float(approximation.hardmax_bound(v, b)) for b, v in zip(betas, vectors)]
        bounds.append(curve(f"Lemma B.1, C = {c}", sizes, bound))
        layer.append(curve(f"C = {c}", sizes, [_layer_hardmax_error(n, c) for n in sizes]))
    record = {"gap": 1.0, "entries": entries, "bounds": bounds, "layer": layer}
    return record


def _layer_hardmax_error(n: int, sharpness: float) -> float:
    """The exact Maximisation step on N points at ±1/4 between centres at ±1: squared distances differ by 1."""
    rows = Rows(1, 2)
    x = torch.where(torch.arange(n) % 2 == 0, -0.25, 0.25).to(torch.float64).unsqueeze(1)
    centers = torch.tensor([[-1.0], [1.0]], dtype=torch.float64)
    true = distances(x, centers).argmin(1)
    h = context(x, centers, true)
    for block in maximisation.exact(rows, n, 1.0, sharpness):
        h = block(h)
    return float((h[:, rows.label] - one_hot(true, 2)).norm(dim=1).max())


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


NETWORKS: dict[str, tuple[Callable, ConstructionSettings]] = {
    "Transformer, norm, M = 128": (transformer, ConstructionSettings(units=128)),
    "Transformer+, norm, M = 128": (transformer_plus, ConstructionSettings(units=128)),
    "Transformer+, norm, M = 512": (transformer_plus, ConstructionSettings(units=512)),
    "Transformer+, squares, M = 64": (transformer_plus, ConstructionSettings(units=64, measure="square")),
    "exact": (exact_transformer_plus, ConstructionSettings(measure="none")),
    "exact, hardmax with C = 100": (
        exact_transformer_plus,
        ConstructionSettings(measure="none", hardmax_sharpness=100.0),
    ),
}


def _compared(name: str, drawn: list[tuple[int, Tensor, Tensor]], tau: int) -> tuple[TransformerPlus, list[Comparison]]:
    """One network, large enough for all instances, and what it does on each."""
    build, settings = NETWORKS[name]
    size = replace(size_of(drawn[0][1], 3), radius=max(size_of(x, 3).radius for _, x, _ in drawn))
    model = build(size, tau, settings)
    return model, [compare(model, x, start, tau, settings.measure) for _, x, start in drawn]


@experiment("theory/iterations", pictures.iterations)
def iterations(quick: bool) -> dict[str, Any]:
    """Error of the assignments after tau iterations, tau = 1 to 10: ‖network - one-hot‖₂ and points that differ."""
    tau, count = 4 if quick else 10, 3 if quick else 40
    record: dict[str, Any] = {"n": 200, "d": 2, "k": 3, "instances": count, "off": [], "differ": []}
    drawn = list(instances(count, tau=tau))
    for name in NETWORKS:
        off, differ = [0.0] * tau, [0.0] * tau
        for got in _compared(name, drawn, tau)[1]:
            for i in range(tau):
                true = one_hot(got.trajectory[i + 1].labels, 3)
                off[i] += float(torch.linalg.matrix_norm(got.labels[i] - true, ord=2)) / count
                differ[i] += float((got.labels[i].argmax(1) != got.trajectory[i + 1].labels).sum()) / count
        record["off"].append(curve(name, range(1, tau + 1), off))
        record["differ"].append(curve(name, range(1, tau + 1), differ))
    return record


@experiment("theory/assignments", pictures.assignments)
def assignments(quick: bool) -> dict[str, Any]:
    """tau = 5, d = 2, k = 3, N = 200: on how many instances the assignments are Lloyd's, and why not on the others."""
    tau, count = 5, 5 if quick else 100
    record: dict[str, Any] = {"n": 200, "d": 2, "k": 3, "tau": tau, "instances": count, "networks": {}}
    drawn = list(instances(count))
    for name in NETWORKS:
        model, found = _compared(name, drawn, tau)
        record["networks"][name] = {
            "layers": len(model.blocks),
            "largest_number_of_heads": max(model.heads),
            "all_iterations_agree": sum(one.parted is None for one in found),
            "last_iteration_agrees": sum(one.n_different == 0 for one in found),
            "points_that_differ_in_the_end": sum(one.n_different for one in found),
            "points_that_part_first": sum(len(one.gaps) for one in found),
            "of_these_gap_above_error": sum(
                int((one.gaps > one.distance_error).sum()) for one in found if one.distance_error is not None
            ),
            "instances_explained": sum(one.explained for one in found),
            "largest_gap_over_error": max(
                [float(one.gaps.max()) / one.distance_error for one in found if one.parted and one.distance_error],
                default=0.0,
            ),
            "gaps": [one.gaps.tolist() for one in found if one.parted],
            "errors": [one.distance_error for one in found if one.parted],
            "mean_distance_error": float(np.mean([one.distance_error or 0.0 for one in found])),
        }
    return record


@experiment("theory/parameter_norms", pictures.parameter_norms)
def parameter_norms(quick: bool) -> dict[str, Any]:
    """‖θ‖ against N and against M, with C = 100 in every temperature."""
    sizes = [2**power for power in range(5, 9 if quick else 14, 1)]
    units = [16, 32, 64] if quick else [16, 32, 64, 128, 256, 512]
    record: dict[str, Any] = {"radius": 1.0, "d": 2, "k": 3, "against_n": [], "against_m": []}
    cases: dict[str, tuple[Callable, ConstructionSettings]] = {
        "Transformer": (transformer, ConstructionSettings(hardmax_sharpness=100.0)),
        "Transformer, squares": (transformer, ConstructionSettings(measure="square", hardmax_sharpness=100.0)),
        "Transformer+, any share": (transformer_plus, ConstructionSettings(hardmax_sharpness=100.0)),
        "Transformer+, shares of 0.05 or more": (
            transformer_plus,
            ConstructionSettings(hardmax_sharpness=100.0, smallest_share=0.05),
        ),
    }
    for name, (build, settings) in cases.items():

        def norm(n: int, m: int, build: Callable = build, settings: ConstructionSettings = settings) -> float:
            return parameter_norm(build(Size(n, 2, 3, 1.0), 1, replace(settings, units=m)), per_head=False)

        record["against_n"].append(curve(f"{name}, M = 64", sizes, [norm(n, 64) for n in sizes]))
        record["against_m"].append(curve(f"{name}, N = 200", units, [norm(200, m) for m in units]))
    return record
