"""An endless source of clustering problems whose labels are known by construction.

A problem is an arrangement of clusters (mixtures, scattered shapes, nested shells, interleaved curves, tiles of a
space), then what happens to real tables: warping, further columns, rounding, skew, background noise. Scales and shifts
of columns are not drawn: the estimator removes them, and :func:`scaled` does the same here.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from coterie.threads import kernel
from coterie.zeroshot.shapes import CURVED, FILLED, Shape, ball, chain, log_uniform, rotation, spiral

NOISE = -1
SOLVABLE = 0.8  # share of points whose nearest neighbour is of their own cluster; what has less is drawn again
ATTEMPTS = 10


class Problem(NamedTuple):
    points_ND: np.ndarray
    labels_N: np.ndarray  # 0 ... K - 1, or NOISE
    n_clusters: int
    kind: str


@dataclass(frozen=True)
class Prior:
    """What problems are drawn, and how often."""

    clusters: tuple[int, int] = (1, 16)
    single: float = 0.08  # share of sets without clusters
    dims: tuple[int, int] = (1, 16)
    flat: float = 0.5  # share of sets in at most three dimensions
    noise: float = 0.2  # share of sets with background noise

    def draw(self, rng: np.random.Generator, n_points: int) -> Problem:
        n_clusters = self._clusters(rng, n_points)
        for _ in range(ATTEMPTS):
            problem = self._attempt(rng, n_points, n_clusters)
            inside = problem.labels_N != NOISE
            if _neighbours_agree(problem.points_ND[inside], problem.labels_N[inside]) >= SOLVABLE:
                break
        return problem

    def _attempt(self, rng: np.random.Generator, n_points: int, n_clusters: int) -> Problem:
        kind = str(rng.choice(list(ARRANGEMENTS), p=[weight for _, weight in ARRANGEMENTS.values()]))
        dims = self._dims(rng, kind)
        n_noise = int(n_points * log_uniform(rng, 0.01, 0.2)) if rng.random() < self.noise else 0
        counts = _counts(rng, n_points - n_noise, n_clusters)
        points = _hardened(rng, np.concatenate(ARRANGEMENTS[kind][0](rng, counts, dims)))
        labels = np.repeat(np.arange(n_clusters), counts)
        if n_noise:
            points = np.concatenate([points, _background(rng, points, n_noise)])
            labels = np.concatenate([labels, np.full(n_noise, NOISE)])
        order = rng.permutation(n_points)
        return Problem(scaled(points[order]), labels[order], n_clusters, kind)

    def _clusters(self, rng: np.random.Generator, n_points: int) -> int:
        low, high = self.clusters
        if low == 1 and rng.random() < self.single:
            return 1
        most = max(2, min(high, n_points // 10))
        low = min(max(2, low), most)
        weights = 1 / (3.0 + np.arange(low, most + 1))
        return int(rng.choice(np.arange(low, most + 1), p=weights / weights.sum()))

    def _dims(self, rng: np.random.Generator, kind: str) -> int:
        low, high = self.dims
        if rng.random() < self.flat or kind in ("interleaved", "nested"):
            low, high = max(low, 2), min(high, 3)
            return low if rng.random() < 0.75 else high
        low = 2 if kind == "scattered" else low
        return round(log_uniform(rng, low - 0.49, high + 0.49))


def scaled(points_ND: np.ndarray) -> np.ndarray:
    """Every column about zero with spread one; single far values do not count for the spread."""
    low, middle, high = np.percentile(points_ND, (25, 50, 75), axis=0)
    reach = np.where(high > low, 3 * (high - low), np.inf)
    near = np.clip(points_ND, low - reach, high + reach)
    spread = near.std(axis=0)
    return (points_ND - middle) / np.where(spread > 0, spread, 1.0)


def _counts(rng: np.random.Generator, n_points: int, n_clusters: int) -> np.ndarray:
    """Sizes of the clusters, from nearly equal to very unequal, none below a few points."""
    least = min(max(4, n_points // 50), n_points // n_clusters)
    shares = rng.dirichlet(np.full(n_clusters, log_uniform(rng, 0.8, 30)))
    if rng.random() < 0.3:
        shares = np.full(n_clusters, 1 / n_clusters)
    counts = least + np.floor(shares * (n_points - least * n_clusters)).astype(np.int64)
    counts[: n_points - counts.sum()] += 1
    return rng.permutation(counts)


# ---- arrangements -------------------------------------------------------------------------------------------------


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


ARRANGEMENTS = {
    "mixture": (mixture, 0.4),
    "scattered": (scattered, 0.35),
    "nested": (nested, 0.07),
    "interleaved": (interleaved, 0.1),
    "tiles": (tiles, 0.08),
}


# ---- packing ------------------------------------------------------------------------------------------------------


@kernel()
def _clearance(a, b):
    """The least squared distance between two sets."""
    least = np.inf
    for i in range(len(a)):
        for j in range(len(b)):
            sq = 0.0
            for d in range(a.shape[1]):
                sq += (a[i, d] - b[j, d]) ** 2
            least = min(least, sq)
    return least


@kernel()
def _neighbours_agree(x, labels):
    """The share of points whose nearest neighbour has their label."""
    agree = 0
    for i in range(len(x)):
        nearest, least = i, np.inf
        for j in range(len(x)):
            if i != j:
                sq = 0.0
                for d in range(x.shape[1]):
                    sq += (x[i, d] - x[j, d]) ** 2
                    if sq >= least:
                        break
                if sq < least:
                    nearest, least = j, sq
        agree += labels[nearest] == labels[i]
    return agree / len(x)


@kernel()
def _spacing(a):
    """The distance to the nearest neighbour that nine of ten points do not exceed."""
    nearest = np.full(len(a), np.inf)
    for i in range(len(a)):
        for j in range(len(a)):
            if i != j:
                sq = 0.0
                for d in range(a.shape[1]):
                    sq += (a[i, d] - a[j, d]) ** 2
                nearest[i] = min(nearest[i], sq)
    return np.sqrt(np.sort(nearest)[int(0.9 * (len(a) - 1))])


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
    own = np.ascontiguousarray(np.concatenate(parts))
    others = np.ascontiguousarray(np.concatenate(placed))
    needed = gap * max(max(_spacing(np.ascontiguousarray(part)) for part in parts), _spacing(others))
    radius = 0.2 if rng.random() < 0.3 else 0.7
    middle = others.mean(axis=0)
    while True:
        direction = rng.normal(size=own.shape[1])
        shift = middle + radius * direction / np.linalg.norm(direction)
        if _clearance(own + shift, others) >= needed**2:
            return [part + shift for part in parts]
        radius *= 1.15


# ---- what happens to tables ---------------------------------------------------------------------------------------


def _hardened(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
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


def _background(rng: np.random.Generator, x: np.ndarray, count: int) -> np.ndarray:
    low, high = x.min(axis=0), x.max(axis=0)
    margin = rng.uniform(0, 0.3) * (high - low)
    return rng.uniform(low - margin, high + margin, size=(count, x.shape[1]))
