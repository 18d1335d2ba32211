"""What happens to arranged clusters before they are a problem: warping, further columns, skew, rounding."""

import numpy as np

from coterie_research.training.zeroshot.prior.shapes import log_uniform, rotation


def distorted(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    """Points after some of these changes, each drawn with a small probability."""
    x = (x - x.mean(axis=0)) / (x.std() or 1.0)
    if rng.random() < 0.25:
        x = _warped(rng, x)
    if rng.random() < 0.08 and x.shape[1] > 1:
        x = _widened(rng, x)
    elif rng.random() < 0.5 and x.shape[1] > 1:
        x = x @ rotation(rng, x.shape[1])
    if rng.random() < 0.15:
        x = _with_columns(rng, x)
    if rng.random() < 0.08:  # skewed columns, as amounts and durations are
        skewed = rng.random(x.shape[1]) < 0.5
        x = np.where(skewed, np.exp(rng.uniform(0.2, 0.7) * x / (x.std(axis=0) + 1e-9)), x)
    if rng.random() < 0.08:  # rounded columns, with ties, down to two values
        step = x.std(axis=0) * log_uniform(rng, 0.03, 2.0) + 1e-9
        x = np.where(rng.random(x.shape[1]) < 0.6, np.round(x / step) * step, x)
    return x


def _warped(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    """Bend the space by a random network of one hidden layer."""
    dims, width = x.shape[1], 8
    inner = rng.normal(size=(dims, width)) * rng.uniform(0.5, 1.5) / np.sqrt(dims)
    outer = rng.normal(size=(width, dims)) / np.sqrt(width)
    return x + rng.uniform(0.2, 0.8) * np.tanh(x @ inner + rng.normal(size=width)) @ outer


def _widened(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    """Many columns, each a bent and noisy reading of the few that matter."""
    width = int(log_uniform(rng, 2 * x.shape[1], 64)) if x.shape[1] < 32 else x.shape[1]
    read = x @ rng.normal(size=(x.shape[1], width)) / np.sqrt(x.shape[1]) * rng.uniform(0.3, 1.0)
    return np.tanh(read + 0.5 * rng.normal(size=width)) + rng.uniform(0.02, 0.3) * rng.normal(size=read.shape)


def _with_columns(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    """Columns that say nothing, and columns that repeat others with an error; columns in any order."""
    n, dims = x.shape
    more = int(rng.integers(1, max(2, dims // 2 + 1)))
    if rng.random() < 0.5:
        new = rng.normal(size=(n, more)) if rng.random() < 0.5 else rng.uniform(-1.7, 1.7, size=(n, more))
        new *= x.std(axis=0).mean()
    else:
        new = x @ rng.normal(size=(dims, more)) / np.sqrt(dims)
        new += new.std(axis=0) * rng.uniform(0, 0.5) * rng.normal(size=new.shape)
    return np.concatenate([x, new], axis=1)[:, rng.permutation(dims + more)]
