"""The cases that every engine is tested on."""

import numpy as np
import torch

from coterie.attention import gumbel_noise
from coterie.kmeans import reference
from coterie.kmeans.algorithm import Algorithm
from coterie.kmeans.family import Row


def algorithm_for(row: Row, seed: int = 0) -> Algorithm:
    gammas = (1.0, 0.1) if row.variant.points == "sinkhorn" else (5.0, 0.7)  # Sinkhorn's steps are slow near the limit
    return Algorithm(row, gamma=gammas[0 if row.form.spherical else 1], keep=0.873, top=7, delta=1.0, seed=seed)


def instance(seed: int, row: Row | None = None, most_clusters: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """Random points (n ≤ 300, d ≤ 8) around random places, on the sphere where the row lives there, and k starts."""
    rng = np.random.default_rng(seed)
    n, d, k = rng.integers(40, 301), rng.integers(2, 9), rng.integers(2, most_clusters + 1)
    X = rng.normal(size=(n, d)) + 3 * rng.normal(size=(k, d))[rng.integers(k, size=n)]
    if row is not None and row.form.spherical:
        X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, X[rng.choice(n, k, replace=False)].copy()


class Plain:
    """The plain algorithm of a row, one call per layer."""

    def __init__(self, algorithm: Algorithm):
        self.algorithm = algorithm
        self.generator = torch.Generator().manual_seed(algorithm.seed)

    def labels(self, X, C):
        choose = reference.planned if self.algorithm.variant.points == "transport" else reference.labels
        return choose(X, C, self.algorithm.spherical)

    def step(self, X, C):
        gumbel = None
        if self.algorithm.draws:
            gumbel = gumbel_noise((len(C), len(X)), torch.zeros(1, dtype=torch.float64), self.generator).numpy()
        return reference.step(self.algorithm, X, C, gumbel)
