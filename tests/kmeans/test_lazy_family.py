"""Trimmed and robust k-means with the lazy engine's assignments are what they are without."""

import numpy as np
import pytest

from coterie.kmeans import fused
from coterie.kmeans.algorithm import Algorithm
from coterie.kmeans.family import TABLE
from coterie.kmeans.lazy import Assigner


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["lloyd", "trimmed", "robust-softmax", "robust-sparsemax", "robust-topk"])
def test_bounds_change_nothing(name, dtype):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = (rng.normal(size=(800, 3)) + 4 * rng.normal(size=(6, 3))[rng.integers(6, size=800)]).astype(dtype)
        algorithm = Algorithm(TABLE[name], gamma=0.3, keep=0.9, top=40)
        plain = fused.run(X, X[:6], algorithm, max_iter=30)
        lazy = fused.run(X, X[:6], algorithm, max_iter=30, assigner=Assigner(X))
        assert np.mean(plain.labels == lazy.labels) > (0.9999 if dtype == np.float64 else 0.99)
        np.testing.assert_allclose(lazy.centers, plain.centers, atol=1e-9 if dtype == np.float64 else 1e-2)
        assert lazy.inertia == pytest.approx(plain.inertia, rel=1e-9 if dtype == np.float64 else 1e-3)
