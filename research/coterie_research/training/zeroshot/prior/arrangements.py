"""Arrangements of clusters: each function places clusters of the given sizes, one array of points a cluster."""

import numpy as np
from scipy.spatial import KDTree

from coterie_research.training.zeroshot.prior.shapes import (
    CURVED,
    FILLED,
    Shape,
    ball,
    chain,
    log_uniform,
    rotation,
    spiral,
)


def mixture(rng: np.random.Generator, counts: np.ndarray, dims: int) -> list[np.ndarray]:
    """Gaussians (or Student's t) of any kind of covariance, the two nearest a drawn number of deviations apart."""
    k = len(counts)
    spread = np.exp(rng.uniform(0, 0.9) * rng.normal(size=(k, dims)))
    if rng.random() < 0.3:
        spread = np.ones((k, dims))
    if rng.random() < 0.5:
        spread *= np.exp(rng.uniform(0, 0.8) * rng.normal(size=(k, 1)))
    turns = [np.eye(dims)] * k
    if rng.random() < 0.6:
        turns = [rotation(rng, dims) for _ in counts]
    if rng.random() < 0.25:  # one covariance for all
        spread, turns = np.repeat(spread[:1], k, axis=0), [turns[0]] * k
    return _gaussians(rng, counts, spread, turns)


def uneven(rng: np.random.Generator, counts: np.ndarray, dims: int) -> list[np.ndarray]:
    """Gaussians (or Student's t) of very different width: the larger mostly the wider, narrow ones beside them."""
    width_K = unequal_widths(rng, counts)
    spread = width_K[:, None] * np.exp(rng.uniform(0, 0.5) * rng.normal(size=(len(counts), dims)))
    return _gaussians(rng, counts, spread, [rotation(rng, dims) for _ in counts])


def unequal_widths(rng: np.random.Generator, counts: np.ndarray) -> np.ndarray:
    """(K,) widths up to a factor of about ten apart, in most draws in the order of the clusters' sizes."""
    width_K = np.exp(rng.uniform(0.4, 1.1) * rng.normal(size=len(counts)))
    return np.sort(width_K)[np.argsort(np.argsort(counts))] if rng.random() < 0.7 else width_K


def _gaussians(
    rng: np.random.Generator, counts: np.ndarray, spread: np.ndarray, turns: list[np.ndarray]
) -> list[np.ndarray]:
    """Clusters of the given deviations and rotations around centres that are placed a drawn distance apart."""
    k, dims = spread.shape
    # centres may lie in few of the dimensions only
    active = min(dims, rng.integers(1, dims + 1) if rng.random() < 0.4 else dims)
    centers = np.zeros((k, dims))
    draw = rng.normal if rng.random() < 0.5 else lambda size: rng.uniform(-1.7, 1.7, size)
    centers[:, :active] = draw(size=(k, active))
    centers = _moved_apart(centers, rotation(rng, dims), spread, turns, log_uniform(rng, 1.3, 5.0))
    heavy = rng.random() < 0.2
    freedom = log_uniform(rng, 2.5, 8)
    parts = []
    for m, center, s, turn in zip(counts, centers, spread, turns):
        noise = rng.normal(size=(m, dims))
        if heavy:
            noise *= np.sqrt(freedom / rng.chisquare(freedom, size=(m, 1)))
        parts.append(center + noise * s @ turn)
    return parts


def _moved_apart(centers, turn, spread, turns, separation: float) -> np.ndarray:
    """Scale the centres until the nearest two are ``separation`` times the sum of their deviations along the way.

    A few rounds push single close pairs apart first, so that one unlucky pair does not drive all others far away.
    """
    k = len(centers)
    centers = centers @ turn
    if k == 1:
        return centers
    upper = np.triu_indices(k, 1)

    def apart(centers):
        way = centers[:, None] - centers
        length = np.linalg.norm(way, axis=-1) + 1e-9
        own = np.stack([np.linalg.norm(w @ t.T * s, axis=-1) for w, s, t in zip(way, spread, turns)]) / length
        return way, length, length / (own + own.T + np.eye(k))

    for _ in range(10):
        way, length, ratio = apart(centers)
        limit = np.quantile(ratio[upper], 0.3)
        close = np.where((ratio < limit) & (length > 1e-8), (limit - ratio) / limit, 0.0)
        np.fill_diagonal(close, 0.0)
        if not close.any():
            break
        centers = centers + 0.3 * (way * close[..., None]).sum(axis=1)
    ratio = apart(centers)[2]
    return centers * separation / max(ratio[upper].min(), 1e-6)


def scattered(rng: np.random.Generator, counts: np.ndarray, dims: int) -> list[np.ndarray]:
    """Shapes of all kinds, packed as closely as a drawn gap allows: they may interlock and enclose one another."""
    pool: tuple[Shape, ...] = (FILLED, CURVED, FILLED + CURVED)[rng.integers(3)]
    if rng.random() < 0.3:
        pool = (pool[rng.integers(len(pool))],)
    spread = rng.uniform(0, 0.6)
    parts = [pool[rng.integers(len(pool))](rng, m, dims) * np.exp(spread * rng.normal()) for m in counts]
    return _packed(rng, parts, log_uniform(rng, 1.3, 8))


def nested(rng: np.random.Generator, counts: np.ndarray, dims: int) -> list[np.ndarray]:
    """A core and shells around it; beyond four clusters, several such targets side by side."""
    parts: list[np.ndarray] = []
    gap = log_uniform(rng, 1.3, 8)
    for group in np.array_split(counts, -(-len(counts) // 4)):
        thickness = log_uniform(rng, 0.02, 0.2)
        radius, target = 0.0, []
        for number, m in enumerate(group):
            if number == 0 and rng.random() < 0.6:
                part = ball(rng, m, dims) * log_uniform(rng, 0.2, 1)
                radius = np.abs(part).max()
            else:
                radius += log_uniform(rng, 0.3, 1.2) + 3 * thickness
                direction = rng.normal(size=(m, dims))
                direction /= np.linalg.norm(direction, axis=1, keepdims=True)
                part = direction * (radius + thickness * rng.normal(size=(m, 1)))
            target.append(part)
        parts.extend(_beside(rng, parts, target, gap))
    return parts


def interleaved(rng: np.random.Generator, counts: np.ndarray, dims: int) -> list[np.ndarray]:
    """Copies of one curve, turned about a centre (arms of a spiral), shifted (stripes) or flipped (moons)."""
    k = len(counts)
    style = rng.integers(3)
    seed = rng.integers(2**32)

    def curve(m: int, r: np.random.Generator) -> np.ndarray:
        return chain(r, m, 2) if style == 1 else spiral(r, m, 2) if style == 0 else _moon(r, m)

    # one curve, drawn often enough that every cluster takes other places on it
    long = curve(int(counts.sum()), np.random.default_rng(seed))
    parts, used = [], 0
    order = rng.permutation(len(long))
    step = log_uniform(rng, 0.15, 0.7)
    shift = rng.normal(size=2)
    shift *= step / np.linalg.norm(shift)
    for number, m in enumerate(counts):
        part = long[order[used : used + m]]
        used += m
        if style == 0:
            angle = 2 * np.pi * number / max(k, 2)
            part = part @ np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
        elif style == 1:
            part = part + number * shift
        else:
            flip = -1.0 if number % 2 else 1.0
            part = part * [1.0, flip] + np.array([number * rng.uniform(0.9, 1.1), -0.2 * flip * step])
        parts.append(part)
    if dims > 2:
        parts = [np.column_stack([part, np.zeros((len(part), dims - 2))]) for part in parts]
    thickness = log_uniform(rng, 0.01, 0.08)
    return [part + thickness * rng.normal(size=part.shape) for part in parts]


def _moon(rng: np.random.Generator, m: int) -> np.ndarray:
    angle = np.pi * rng.uniform(size=m)
    return np.column_stack([np.cos(angle), np.sin(angle)])


def tiles(rng: np.random.Generator, counts: np.ndarray, dims: int) -> list[np.ndarray]:
    """A filled box, cut into the cells of random centres with narrow empty borders between them."""
    k = len(counts)
    centers = rng.uniform(size=(k, dims))
    border = log_uniform(rng, 0.5, 2) / counts.sum() ** (1 / dims)
    found: list[list[np.ndarray]] = [[] for _ in counts]
    missing = counts.copy()
    for _ in range(60):
        x = rng.uniform(size=(max(256, 4 * int(counts.sum())), dims))
        distance = np.linalg.norm(x[:, None] - centers, axis=2)
        ranked = np.sort(distance, axis=1)
        inside = np.ones(len(x), bool) if k == 1 else ranked[:, 1] - ranked[:, 0] > border
        nearest = distance.argmin(axis=1)
        for cluster in np.flatnonzero(missing):
            taken = x[inside & (nearest == cluster)][: missing[cluster]]
            found[cluster].append(taken)
            missing[cluster] -= len(taken)
        if not missing.any():
            break
    # a cell that is all border becomes a small blob at its centre
    return [
        np.concatenate([*f, c + 0.1 * border * rng.normal(size=(m, dims))]) for f, c, m in zip(found, centers, missing)
    ]


def _spacing(x: np.ndarray) -> float:
    """The distance to the nearest neighbour that nine of ten points do not exceed."""
    nearest = KDTree(x).query(x, 2)[0][:, 1] if len(x) > 1 else np.full(1, np.inf)
    return float(np.sort(nearest)[int(0.9 * (len(x) - 1))])


def _packed(rng: np.random.Generator, parts: list[np.ndarray], gap: float) -> list[np.ndarray]:
    placed: list[np.ndarray] = []
    for part in parts:
        placed.extend(_beside(rng, placed, [part], gap))
    return placed


def _beside(
    rng: np.random.Generator, placed: list[np.ndarray], parts: list[np.ndarray], gap: float
) -> list[np.ndarray]:
    """Move ``parts`` together, from the middle outwards, until they keep ``gap`` spacings from all that is placed."""
    if not placed:
        return parts
    own, others = np.concatenate(parts), np.concatenate(placed)
    needed = gap * max(max(_spacing(part) for part in parts), _spacing(others))
    tree = KDTree(others)
    radius = 0.2 if rng.random() < 0.3 else 0.7
    middle = others.mean(axis=0)
    while True:
        direction = rng.normal(size=own.shape[1])
        shift = middle + radius * direction / np.linalg.norm(direction)
        if tree.query(own + shift)[0].min() >= needed:
            return [part + shift for part in parts]
        radius *= 1.15


# how it is done, and how often it is drawn
ARRANGEMENTS = {
    "mixture": (mixture, 0.4),
    "scattered": (scattered, 0.35),
    "nested": (nested, 0.07),
    "interleaved": (interleaved, 0.1),
    "tiles": (tiles, 0.08),
}
