"""Whole constructed networks beside Lloyd's algorithm, and their parameter norms."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from coterie_research.incontext_em.theory import (
    ConstructionSettings,
    Size,
    exact_transformer_plus,
    parameter_norm,
    transformer,
    transformer_plus,
)
from coterie_research.incontext_em.theory.comparison import Comparison, compare, one_hot, size_of
from coterie_research.incontext_em.theory.modules import TransformerPlus
from coterie_research.incontext_em.theory_checks import pictures
from coterie_research.incontext_em.theory_checks.steps import instances
from coterie_research.records import curve, experiment

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
