"""Training of the stronger learned Lloyd for the inertia at the fixed point.

Command: ``coterie reproduce learned-lloyd/training``. The number of swaps and the fixed point have no useful gradient,
so an evolution strategy with a learned variance per parameter is used (separable CMA-ES; Ros and Hansen, 2008). The
loss is the mean log of the inertia divided by that of Lloyd's algorithm from the same greedy k-means++ start, on fresh
instances in every generation. MNIST takes no part.
"""

import time
from pathlib import Path

import numpy as np
import torch

from coterie_research.kmeans_transformers.learned_lloyd import plain
from coterie_research.kmeans_transformers.learned_lloyd.conditioned import (
    FIRST,
    Parameters,
    run_layers,
    shipped_schedule,
)
from coterie_research.records import save, spent
from coterie_research.training.learned_lloyd import Instances

POPULATION, KEPT, INSTANCES = 12, 4, 20
SPREAD = Parameters(0.2, 0.1, 0.1, 0.1, 0.1, 0.5, 0.7).vector()  # of the first generation


def training(output: Path, quick: bool = False) -> dict:
    """Train for 60 generations, and write the parameters and the curve."""
    began, generations = time.process_time(), 2 if quick else 60
    rng, curve = np.random.default_rng(0), []
    mean, spread = FIRST.vector(), SPREAD.copy()
    log_rank = np.log(KEPT + 0.5) - np.log(np.arange(1, KEPT + 1))
    share = log_rank / log_rank.sum()
    rate = 2 / (len(mean) + 3)
    for generation in range(generations):
        instances = draw(INSTANCES, generation)
        steps = rng.normal(size=(POPULATION, len(mean)))
        losses = np.array([loss(mean + spread * step, instances) for step in steps])
        best = steps[np.argsort(losses)[:KEPT]]
        mean = mean + spread * (share @ best)
        # the variance of the selected steps, per parameter; 1 would keep it
        spread = spread * np.sqrt((1 - rate) + rate * np.clip(share @ best**2, 0.1, 4.0))
        curve.append({"generation": generation, "mean": float(losses.mean()), "best": float(losses.min())})
    found = Parameters(*(round(float(value), 4) for value in mean))
    held_out = draw(4 if quick else 200, 1_000_000)
    record = {
        "parameters": vars(found),
        "held_out_log_ratio": loss(found.vector(), held_out),
        "held_out_log_ratio_before_training": loss(FIRST.vector(), held_out),
        "held_out_log_ratio_of_the_schedule_alone": loss(Parameters().vector(), held_out),
        "held_out_instances": len(held_out),
        "curve": curve,
    }
    return save(record, "learned-lloyd/training", output, quick, file="stronger", seed=0, cpu_seconds=spent(began))


def draw(n: int, seed: int) -> list[tuple[np.ndarray, np.ndarray, float]]:
    """Points, a greedy k-means++ start, and the inertia of Lloyd's algorithm from there."""
    generator, rng = torch.Generator().manual_seed(seed), np.random.default_rng(seed)
    found = []
    for _ in range(n):
        x_BND, start_BKD = Instances().draw(1, generator)
        x = x_BND[0].double().numpy()
        start = plain.greedy_start(x, start_BKD.shape[1], rng)
        found.append((x, start, plain.lloyd(x, start.copy())))
    return found


def loss(parameters: np.ndarray, instances: list[tuple[np.ndarray, np.ndarray, float]]) -> float:
    schedule = shipped_schedule()
    ratios = [run_layers(x, start.copy(), schedule, parameters) / lloyd for x, start, lloyd in instances]
    return float(np.mean(np.log(ratios)))
