"""The table of cases that every engine is tested on."""

import numpy as np
import torch

from coterie.attention import gumbel_noise
from coterie.kmeans import reference
from coterie.kmeans.family import Row
from coterie.kmeans.weights import Settings


def settings_for(row: Row, seed: int = 0) -> Settings:
    return Settings(
        gamma=5.0 if row.form.spherical else 0.7,
        keep=0.873,
        top=7,
        delta=1.0,
        generator=torch.Generator().manual_seed(seed),
    )


def instance(seed: int, row: Row | None = None, most_clusters: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """Random points (n ≤ 300, d ≤ 8) around random places, on the sphere where the row lives there, and k starts."""
    rng = np.random.default_rng(seed)
    n, d, k = rng.integers(40, 301), rng.integers(2, 9), rng.integers(2, most_clusters + 1)
    X = rng.normal(size=(n, d)) + 3 * rng.normal(size=(k, d))[rng.integers(k, size=n)]
    if row is not None and row.form.spherical:
        X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, X[rng.choice(n, k, replace=False)].copy()


class Plain:
    """The plain algorithm of a row, one call a layer."""

    def __init__(self, row: Row, settings: Settings, seed: int = 0):
        self.row, self.settings = row, settings
        self.generator = torch.Generator().manual_seed(seed)

    def labels(self, X, C):
        return reference.labels(X, C, self.row.form.spherical)

    def step(self, X, C):
        sphere, s, name = self.row.form.spherical, self.settings, self.row.variant.name
        if name == "lloyd":
            return reference.lloyd(X, C, sphere)
        if name == "soft":
            return reference.soft(X, C, s.gamma, sphere)
        if name == "trimmed":
            return reference.trimmed(X, C, 100 * s.keep, sphere)
        if name == "medoids":
            noise = gumbel_noise((len(C), len(X)), torch.zeros(1, dtype=torch.float64), self.generator)
            return reference.medoids(X, C, s.delta, noise.numpy(), sphere)
        return reference.robust(X, C, name.removeprefix("robust-"), s.gamma, s.top, sphere)
