"""Shapes of clusters: each function draws ``m`` points around the origin, of size about one; and what distorts them."""

from collections.abc import Callable

import numpy as np

Shape = Callable[[np.random.Generator, int, int], np.ndarray]  # generator, points, dimensions


def rotation(rng: np.random.Generator, dims: int) -> np.ndarray:
    q, r = np.linalg.qr(rng.normal(size=(dims, dims)))
    return q * np.sign(np.diag(r))


def log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def gaussian(rng: np.random.Generator, m: int, dims: int) -> np.ndarray:
    spread = np.exp(rng.uniform(0, 0.8) * rng.normal(size=dims))
    return 0.4 * (rng.normal(size=(m, dims)) * spread) @ rotation(rng, dims)


def heavy(rng: np.random.Generator, m: int, dims: int) -> np.ndarray:
    """Student's t with 2.5 to 6 degrees of freedom."""
    freedom = log_uniform(rng, 2.5, 6)
    return 0.35 * rng.normal(size=(m, dims)) * np.sqrt(freedom / rng.chisquare(freedom, size=(m, 1)))


def ball(rng: np.random.Generator, m: int, dims: int) -> np.ndarray:
    """Filled; towards the centre denser, as dense or (a bowl) less dense."""
    direction = rng.normal(size=(m, dims))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    return direction * rng.uniform(size=(m, 1)) ** (log_uniform(rng, 0.6, 2) / dims)


def box(rng: np.random.Generator, m: int, dims: int) -> np.ndarray:
    """A filled box of unequal sides, now and then with a density that falls from one end to the other."""
    x = rng.uniform(size=(m, dims))
    if rng.random() < 0.3:
        x[:, 0] **= log_uniform(rng, 1.3, 3)
    sides = np.exp(rng.uniform(-1.2, 0.3, size=dims))
    return (x - 0.5) * 2 * sides @ rotation(rng, dims)


def triangle(rng: np.random.Generator, m: int, dims: int) -> np.ndarray:
    """A filled simplex of random corners."""
    corners = rng.normal(size=(dims + 1, dims))
    weights = rng.dirichlet(np.ones(dims + 1), size=m)
    return (weights - 1 / (dims + 1)) @ corners * 1.2


def shell(rng: np.random.Generator, m: int, dims: int) -> np.ndarray:
    """The surface of a ball: in two dimensions a ring."""
    direction = rng.normal(size=(m, dims))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    radius = 1 + log_uniform(rng, 0.01, 0.15) * rng.normal(size=(m, 1))
    return direction * radius * np.exp(rng.uniform(-0.3, 0.3, size=dims))


def _along(rng: np.random.Generator, m: int) -> np.ndarray:
    """Places on a curve between 0 and 1: at random, or evenly with a little disorder."""
    if rng.random() < 0.5:
        return rng.uniform(size=m)
    return (np.arange(m) + rng.uniform(size=m)) / m


def _thick(rng: np.random.Generator, curve: np.ndarray, dims: int, thickness: float | None = None) -> np.ndarray:
    """A plane curve in ``dims`` dimensions, turned at random and with some thickness."""
    thickness = log_uniform(rng, 0.01, 0.1) if thickness is None else thickness
    wide = np.zeros((len(curve), dims))
    wide[:, : min(2, dims)] = curve[:, : min(2, dims)]
    noise = rng.normal(size=wide.shape) if rng.random() < 0.7 else rng.uniform(-1.7, 1.7, size=wide.shape)
    return (wide + thickness * noise) @ rotation(rng, dims)


def arc(rng: np.random.Generator, m: int, dims: int) -> np.ndarray:
    """From a quarter of a circle to a whole one."""
    angle = _along(rng, m) * rng.uniform(0.5, 2.0) * np.pi
    curve = np.column_stack([np.cos(angle), np.sin(angle)])
    return _thick(rng, curve - curve.mean(axis=0) * (rng.random() < 0.5), dims)


def spiral(rng: np.random.Generator, m: int, dims: int) -> np.ndarray:
    turns = rng.uniform(0.7, 2.2)
    t = np.sqrt(_along(rng, m))
    angle = 2 * np.pi * turns * t
    radius = rng.uniform(0.05, 0.3) + t
    return _thick(
        rng, np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), dims, log_uniform(rng, 0.01, 0.05)
    )


def bar(rng: np.random.Generator, m: int, dims: int) -> np.ndarray:
    along = 2 * _along(rng, m) - 1
    return _thick(rng, np.column_stack([along, np.zeros(m)]), dims, log_uniform(rng, 0.01, 0.2))


def cross(rng: np.random.Generator, m: int, dims: int) -> np.ndarray:
    """Two or three bars that start at, or run through, one point."""
    arms = rng.integers(2, 4)
    angle = np.cumsum(rng.uniform(0.8, 2.0, size=arms))[rng.integers(arms, size=m)]
    along = _along(rng, m) * 2 - (rng.random() < 0.5)
    curve = along[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return _thick(rng, curve - curve.mean(axis=0), dims, log_uniform(rng, 0.01, 0.1))


def chain(rng: np.random.Generator, m: int, dims: int) -> np.ndarray:
    """A smooth random curve: in every dimension a few slow waves."""
    waves = rng.integers(1, 4)
    t = _along(rng, m)[:, None]
    frequency = np.arange(1, waves + 1)[:, None] * rng.uniform(0.3, 0.7)
    phase = rng.uniform(0, 2 * np.pi, size=(waves, dims))
    size = rng.normal(size=(waves, dims)) / np.arange(1, waves + 1)[:, None]
    curve = (size * np.sin(2 * np.pi * frequency * t[:, :, None] + phase)).sum(axis=1)
    return curve - curve.mean(axis=0) + log_uniform(rng, 0.01, 0.08) * rng.normal(size=curve.shape)


FILLED: tuple[Shape, ...] = (gaussian, gaussian, heavy, ball, box, triangle)
CURVED: tuple[Shape, ...] = (shell, arc, arc, spiral, bar, bar, cross, chain, chain)


# --- what distorts them -------------------------------------------------------------------------------------


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
