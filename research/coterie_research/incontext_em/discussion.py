"""Small checks of what the paper discusses without measuring it: 3 clusters of 20 points, 4 dimensions, Δ = 5.

- ``instances``: the error against the number n of pretraining instances for several Δ²/2σ², with and without P. Remark
  6 says that n of the order of exp(Δ²/2σ²) reaches the minimax rate exp(-Δ²/8σ²).
- ``temperature``: scores times log N, as the constructions need, at several separations and other N at test time.
- ``dimensions``: the error and the CPU time of a training step.
- ``context``: networks trained with P and tested with a P that says nothing, and the reverse, after several steps.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import torch
from torch import Tensor

from coterie_research.incontext_em.point_training import start_of
from coterie_research.incontext_em.point_transformer import PointConfig, PointTransformer
from coterie_research.incontext_em.scoring import (
    Run,
    Score,
    copied_labels,
    kmeans_labels,
    network_scores,
    over_seeds,
    paper_loss,
    summary,
    test_data,
    trained,
)
from coterie_research.incontext_em.settings import Setting

BASE = Setting(0, counts=(20, 20, 20), dims=4, at_least=False)
EXPONENTS = [2.0, 4.0, 6.0]  # Δ²/2σ²: exp of it is 7, 55 and 403
INSTANCES = (8, 64, 512, None)  # None: new ones in every step
DISTANCES = [5.0, 10.0, 20.0]
DIMENSIONS = [2, 8, 32, 128]
STEPS = [50, 100, 200, 400]


def silent(config: PointConfig, x_BND: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """A start that says nothing: all centres at the mean, labels at random."""
    centers_BKD = x_BND.mean(1, keepdim=True).expand(-1, config.n_clusters, -1)
    return centers_BKD, torch.randint(config.n_clusters, x_BND.shape[:2], generator=generator)


STARTS = {"P": start_of, "a P that says nothing": silent}


def discussed(run: Run) -> dict[str, Any]:
    parts = {"instances": _instances, "temperature": _temperature, "dimensions": _dimensions, "context": _context}
    first = slice(1 if run.budget.settings is not None else None)  # of every list, where few settings are measured
    return {name: list(part(run, first)) for name, part in parts.items() if not run.rows or name in run.rows}


def _trained(run: Run, name: str, setting: Setting, score: Score, **how: Any) -> dict[str, Any]:
    return over_seeds(trained(setting, name, how.pop("budget", run.budget), run.kept, score, **how))


def _instances(run: Run, first: slice) -> Iterator[dict[str, Any]]:
    for exponent, context in product(EXPONENTS[first], (True, False)):
        var = BASE.distance**2 / (2 * exponent)
        setting = replace(BASE, var=(var, var), network={"context": context})
        data = test_data(setting, run.budget.instances)

        def score(network: PointTransformer, setting: Setting = setting, data: Any = data) -> dict[str, Any]:
            return network_scores(network, data) | {"l1": paper_loss(network, setting, run.budget.instances)}

        def measured(n: int | None, score: Score = score, setting: Setting = setting) -> dict[str, Any]:
            name = f"instances/{setting.var}/{setting.network['context']}/{n}"
            return _trained(run, name, replace(setting, training_instances=n), score)

        yield {
            "exponent": exponent,
            "context": context,
            "points": [{"n": n, **measured(n)} for n in (INSTANCES[-2:] if first.stop else INSTANCES)],
            "minimax_rate": float(np.exp(-exponent / 4)),
            "copied": summary(copied_labels(data), None, data),
            "bayes": summary(data.bayes_log_p_BNK().argmax(-1).numpy(), None, data),
        }


def _temperature(run: Run, first: slice) -> Iterator[dict[str, Any]]:
    for distance, temperature in product(DISTANCES[first], ("root", "log")):
        setting = replace(BASE, distance=distance, var=(10.0, 10.0), network={"temperature": temperature})
        tests = {3 * n: test_data(replace(setting, counts=(n,) * 3), run.budget.instances) for n in (20, 80)}

        def score(network: PointTransformer, tests: Any = tests) -> dict[str, Any]:
            return {f"ari_{n}": network_scores(network, data)["ari"] for n, data in tests.items()}

        scores = _trained(run, f"temperature/{distance}/{temperature}", setting, score)
        yield {"distance": distance, "temperature": temperature, **scores}


def _dimensions(run: Run, first: slice) -> Iterator[dict[str, Any]]:
    for dims in DIMENSIONS[first]:
        setting = replace(BASE, distance=10.0, dims=dims, var=(10.0, 10.0))
        data = test_data(setting, run.budget.instances)

        def score(network: PointTransformer, data: Any = data) -> dict[str, Any]:
            spent = {"milliseconds_per_step": 1000 * network.training_seconds / run.budget.steps}
            return network_scores(network, data) | spent

        kmeans = summary(kmeans_labels(data), None, data)
        yield {"dims": dims, **_trained(run, f"dimensions/{dims}", setting, score), "kmeans": kmeans}


def _context(run: Run, first: slice) -> Iterator[dict[str, Any]]:
    setting = replace(BASE, distance=10.0, var=(10.0, 10.0), network={"context": True})
    data = test_data(setting, run.budget.instances)

    def score(network: PointTransformer) -> dict[str, Any]:
        return {name: network_scores(network, data, test)["ari"] for name, test in STARTS.items()}

    for name, steps in product(STARTS, STEPS[first]):
        budget = replace(run.budget, steps=steps)
        scores = _trained(run, f"context/{name}/{steps}", setting, score, budget=budget, start=STARTS[name])
        yield {"trained_with": name, "steps": steps, "tested_with": scores}
