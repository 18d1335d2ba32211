"""Gaussian mixtures whose clusters lie a given distance apart."""

import numpy as np


def mixtures(sizes, dims, distance, std=1.0, *, batch=1, seed=0):
    """Points (batch, rows, dims), the rows in random order, and their labels and centres."""
    rng, k = np.random.default_rng(seed), len(sizes)
    centers = rng.normal(size=(batch, k, dims))
    gaps = np.linalg.norm(centers[:, :, None] - centers[:, None], axis=-1) + np.where(np.eye(k), np.inf, 0)
    centers *= distance / gaps.min((1, 2))[:, None, None]
    labels = rng.permuted(np.tile(np.repeat(np.arange(k), sizes), (batch, 1)), axis=1)
    points = np.take_along_axis(centers, labels[..., None], 1)
    return points + std * rng.normal(size=points.shape), labels, centers
