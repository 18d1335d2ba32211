"""The positions of rows in a picture: columns, principal axes, or a UMAP embedding."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from coterie.geometry.spread import principal_axes
from coterie.wording import short

MAX_POINTS = 20_000
UMAP_POINTS = 5_000


class View:
    """A projection of X to one or two axes.

    ``kind`` is "auto" (up to two columns as they are, more by principal axes), "columns" (the first two), "pca",
    "umap" (needs umap-learn) or a pair of column names or numbers. The axes are computed from ``rows``, a sample of at
    most ``max_points`` rows; ``points`` are the positions of these rows. ``logs`` says which axes are logarithmic:
    those of columns of positive numbers with a heavy tail.
    """

    def __init__(
        self,
        X: np.ndarray,
        names: Sequence[Any] | None = None,
        kind: str | Sequence[Any] = "auto",
        max_points: int = MAX_POINTS,
    ):
        X = np.asarray(X)
        n, d = X.shape
        self.names = [f"x{i}" for i in range(d)] if names is None else [str(name) for name in names]
        self.rows = np.arange(n)
        self.note = ""
        limit = min(max_points, UMAP_POINTS) if kind == "umap" else max_points
        if n > limit:
            self.rows = np.sort(np.random.default_rng(0).choice(n, limit, replace=False))
            self.note = f"{limit:,} of {n:,} points are shown"
        self.linear = True
        self.origin, self.axes = np.zeros(d), np.eye(d)
        self.titles = [short(name) for name in self.names]
        self._choose(X[self.rows], kind)
        self.dims = len(self.titles)
        plain = self.linear and not self.titles[0].startswith("principal")
        self.logs = np.array([plain and heavy_tailed(self.points[:, i]) for i in range(self.dims)])
        self.titles = [f"{title} (log scale)" if log else title for title, log in zip(self.titles, self.logs)]

    def place(self, rows: np.ndarray) -> np.ndarray:
        """(n, dims) the positions of rows of the same space."""
        if not self.linear:  # the mean position of the nearest embedded rows
            rows = np.asarray(rows, dtype=np.float64)
            known, places = np.isfinite(rows).all(axis=1), np.full((len(rows), 2), np.nan)
            _, near = self._tree.query(rows[known], k=min(5, len(self.points)))
            places[known] = self.points[near.reshape(int(known.sum()), -1)].mean(axis=1)
            return places
        return (np.asarray(rows, dtype=np.float64) - self.origin) @ self.axes

    def warped(self, points: np.ndarray) -> np.ndarray:
        """Positions as they are drawn: the logarithms to base 10 on logarithmic axes."""
        tiny = np.finfo(np.float64).tiny
        return np.where(self.logs, np.log10(np.maximum(points, tiny)), points) if self.logs.any() else points

    def limits(self, *parts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Limits of the map, as it is drawn, that do not depend on a few distant points."""
        points = np.vstack(parts)
        return bulk(self.warped(points[np.isfinite(points).all(axis=1)]))

    @staticmethod
    def edges(drawn: np.ndarray) -> np.ndarray:
        """Edges of the bins of a histogram of positions as they are drawn."""
        return np.histogram_bin_edges(drawn, bins=min(60, max(10, int(np.sqrt(len(drawn))) * 2)))

    def outside(self, points: np.ndarray, least: np.ndarray, most: np.ndarray) -> str:
        """How many points the limits leave out, in words; empty if there are none."""
        drawn = self.warped(points)
        count = int(((drawn < least) | (drawn > most)).any(axis=1).sum())
        return "" if not count else "1 point is outside" if count == 1 else f"{count:,} points are outside"

    def _choose(self, X: np.ndarray, kind: str | Sequence[Any]) -> None:
        d = X.shape[1]
        if not isinstance(kind, str):
            self._take([self._column(one) for one in kind])
        elif kind not in ("auto", "columns", "pca", "umap"):
            raise ValueError(f"view must be 'auto', 'columns', 'pca', 'umap' or a pair of columns; got {kind!r}.")
        elif kind == "umap":
            self._bend(X)
            return
        elif kind == "columns":
            self._take(list(range(min(d, 2))))
        elif d > 2 or (kind == "pca" and d > 1):
            self._turn(X.astype(np.float64))
        self.points = self.place(X)

    def _take(self, columns: list[int]) -> None:
        if not 1 <= len(columns) <= 2:
            raise ValueError(f"A map has one or two columns; got {len(columns)}.")
        self.axes = np.eye(len(self.names))[:, columns]
        self.titles = [short(self.names[i]) for i in columns]

    def _column(self, wanted: Any) -> int:
        if isinstance(wanted, int | np.integer) and 0 <= wanted < len(self.names):
            return int(wanted)
        if str(wanted) not in self.names:
            raise ValueError(f"There is no column {wanted!r}. Available are {', '.join(map(repr, self.names[:20]))}.")
        return self.names.index(str(wanted))

    def _turn(self, X: np.ndarray) -> None:
        self.origin = X.mean(axis=0)
        axes, variance = principal_axes(X - self.origin)
        shares = variance / variance.sum() if variance.sum() > 0 else np.zeros_like(variance)
        if len(axes) < 2:
            axes, shares = np.vstack([axes, np.zeros_like(axes)]), np.append(shares, 0.0)
        self.axes = axes[:2].T
        self.titles = [f"principal axis {i + 1} ({shares[i]:.0%} of the variance)" for i in range(2)]

    def _bend(self, X: np.ndarray) -> None:
        try:
            from umap import UMAP
        except ImportError as error:
            raise ImportError("This map needs UMAP: pip install umap-learn, or use view='pca'.") from error
        self.linear = False
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about seeds and threads
            found = UMAP(n_neighbors=min(15, max(2, len(X) - 1)), random_state=0).fit_transform(X.astype(np.float64))
        self.points = np.asarray(found, dtype=np.float64)
        self._tree = cKDTree(X.astype(np.float64))
        self.titles = ["UMAP 1", "UMAP 2"]


def heavy_tailed(values: np.ndarray) -> bool:
    """Whether numbers are positive and so skewed that most of them would be drawn at one place of a linear axis."""
    if not len(values) or values.min() <= 0:
        return False
    low, middle, high = np.percentile(values, (1, 50, 99))
    return bool(high - middle > 8 * (middle - low) > 0)


def bulk(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Limits of a map that contains all points except those far beyond the central 98 percent."""
    low, high = np.percentile(points, (1, 99), axis=0)
    reach = np.where(high > low, high - low, 1.0)
    near = ((points >= low - 1.5 * reach) & (points <= high + 1.5 * reach)).all(axis=1)
    seen = points[near] if near.any() else points
    least, most = seen.min(axis=0), seen.max(axis=0)
    margin = 0.05 * np.where(most > least, most - least, 1.0)
    return least - margin, most + margin
