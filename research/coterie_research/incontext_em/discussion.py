"""Small checks of what the paper discusses without measuring it: 3 clusters of 20 points, 4 dimensions, Δ = 5.

- ``instances``: the error against the number n of pretraining instances for several Δ²/2σ², with and without P. Remark
  6 says that n of the order of exp(Δ²/2σ²) reaches the minimax rate exp(-Δ²/8σ²).
- ``temperature``: scores times log N, as the constructions need, at several separations and other N at test time.
- ``dimensions``: the error and the CPU time of a training step.
- ``context``: networks trained with P and tested with a P that says nothing, and the reverse, after several steps.
"""

import time
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from coterie_research.incontext_em.point_training import start_of
from coterie_research.incontext_em.point_transformer import PointConfig, PointTransformer
from coterie_research.incontext_em.scoring import (
    Run,
    copied_labels,
    kmeans_labels,
    network_scores,
    over_seeds,
    paper_loss,
    summary,
    test_data,
    train_setting,
)
from coterie_research.incontext_em.settings import Budget, Setting

BASE = Setting(0, counts=(20, 20, 20), dims=4, at_least=False)
EXPONENTS = (2.0, 4.0, 6.0)  # Δ²/2σ²: exp of it is 7, 55 and 403
INSTANCES = (8, 64, 512, None)  # None: new ones in every step
DISTANCES = (5.0, 10.0, 20.0)
DIMENSIONS = (2, 8, 32, 128)
STEPS = (50, 100, 200, 400)


def silent(config: PointConfig, x_BND: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """A start that says nothing: all centres at the mean, labels at random."""
    centers_BKD = x_BND.mean(1, keepdim=True).expand(-1, config.n_clusters, -1)
    return centers_BKD, torch.randint(config.n_clusters, x_BND.shape[:2], generator=generator)


STARTS = {"P": start_of, "a P that says nothing": silent}


def discussed(run: Run) -> dict[str, Any]:
    parts = {"instances": _instances, "temperature": _temperature, "dimensions": _dimensions, "context": _context}
    quick = run.budget.settings is not None
    return {name: part(run, quick) for name, part in parts.items() if not run.rows or name in run.rows}


def _over_seeds(run: Run, name: str, measure: Any) -> dict[str, Any]:
    return over_seeds([run.kept.once(f"{name}/{seed}", partial(measure, seed)) for seed in range(run.budget.seeds)])


def _instances(run: Run, quick: bool) -> list[dict[str, Any]]:
    found = []
    for exponent in EXPONENTS[:1] if quick else EXPONENTS:
        var = BASE.distance**2 / (2 * exponent)
        for context in (True, False):
            setting = replace(BASE, var=(var, var), network={"context": context})
            data = test_data(setting, run.budget.instances)
            row: dict[str, Any] = {"exponent": exponent, "context": context, "points": []}
            row |= {"minimax_rate": float(np.exp(-exponent / 4)), "copied": summary(copied_labels(data), None, data)}
            row["bayes"] = summary(data.bayes_log_p_BNK().argmax(-1).numpy(), None, data)
            for n in INSTANCES[-2:] if quick else INSTANCES:
                limited = replace(setting, training_instances=n)

                def measure(seed: int, one: Setting = limited, data: Any = data) -> Any:
                    network = train_setting(one, run.budget, seed)
                    return network_scores(network, data) | {"l1": paper_loss(network, one, run.budget.instances)}

                row["points"].append({"n": n, **_over_seeds(run, f"instances/{exponent}/{context}/{n}", measure)})
            found.append(row)
    return found


def _temperature(run: Run, quick: bool) -> list[dict[str, Any]]:
    found = []
    for distance in DISTANCES[:1] if quick else DISTANCES:
        for temperature in ("root", "log"):
            setting = replace(BASE, distance=distance, var=(10.0, 10.0), network={"temperature": temperature})
            tests = {3 * n: test_data(replace(setting, counts=(n,) * 3), run.budget.instances) for n in (20, 80)}

            def measure(seed: int, setting: Setting = setting, tests: Any = tests) -> Any:
                network = train_setting(setting, run.budget, seed)
                return {f"ari_{n}": network_scores(network, data)["ari"] for n, data in tests.items()}

            scores = _over_seeds(run, f"temperature/{distance}/{temperature}", measure)
            found.append({"distance": distance, "temperature": temperature, **scores})
    return found


def _dimensions(run: Run, quick: bool) -> list[dict[str, Any]]:
    found = []
    for dims in DIMENSIONS[:1] if quick else DIMENSIONS:
        setting = replace(BASE, distance=10.0, dims=dims, var=(10.0, 10.0))
        data = test_data(setting, run.budget.instances)

        def measure(seed: int, setting: Setting = setting, data: Any = data) -> Any:
            began = time.process_time()
            network = train_setting(setting, run.budget, seed)
            spent = 1000 * (time.process_time() - began) / run.budget.steps
            return network_scores(network, data) | {"milliseconds_per_step": spent}

        scores = _over_seeds(run, f"dimensions/{dims}", measure)
        found.append({"dims": dims, **scores, "kmeans": summary(kmeans_labels(data), None, data)})
    return found


def _context(run: Run, quick: bool) -> list[dict[str, Any]]:
    setting = replace(BASE, distance=10.0, var=(10.0, 10.0), network={"context": True})
    data = test_data(setting, run.budget.instances)
    found: list[dict[str, Any]] = []
    for trained_with, start in STARTS.items():
        for steps in STEPS[:1] if quick else STEPS:
            budget: Budget = replace(run.budget, steps=steps)

            def measure(seed: int, start: Any = start, budget: Budget = budget) -> Any:
                network: PointTransformer = train_setting(setting, budget, seed, start)
                return {name: network_scores(network, data, test)["ari"] for name, test in STARTS.items()}

            scores = _over_seeds(run, f"context/{trained_with}/{steps}", measure)
            found.append({"trained_with": trained_with, "steps": steps, "tested_with": scores})
    return found
