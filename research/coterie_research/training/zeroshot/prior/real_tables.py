"""Problems from real tables: rows, classes and columns of a table of a corpus, in many variations.

A table is drawn, whatever the number of its problems, the more often the more visible its classes are to nearest
neighbours; tables below :data:`VISIBLE` are never drawn. Then rows are drawn, classes left out or joined (several
classes under one label are one cluster of several modes), columns left out, rescaled, moved a little or added without
meaning. A problem is kept if its classes are still visible. Single clusters are the rows of one class of a table with
clear classes, or rows of any table whose columns are permuted, each for itself.
"""

import numpy as np

from coterie_research.training.zeroshot.prior.corpus import RealTable, visibility

VISIBLE = 0.3  # least agreement with neighbours beyond chance, of tables and of the problems drawn from them
CLEAR = 0.6  # that of tables whose classes are single clusters
FULL = 0.8  # agreement from which tables are drawn equally often
MOST_COLUMNS = 64
LEAST_ROWS = 4  # of a class
DISTINCT_SHARE = 0.5  # of the rows that differ from all others, at least
ATTEMPTS = 30


class RealProblems:
    """A source of problems with an exact number of points."""

    def __init__(self, tables: tuple[RealTable, ...], folds: tuple[int, ...] = ()):
        inside = [each for each in tables if each.visible >= VISIBLE and (not folds or each.fold in folds)]
        if not inside:
            raise ValueError(
                f"No table of the corpus has classes that neighbours see (agreement of {VISIBLE} or more)."
            )
        self.tables = inside
        of_table: dict[str, float] = {}
        for each in inside:
            of_table[each.table] = of_table.get(each.table, 0.0) + 1.0
        self.weight = np.array([min(each.visible, FULL) / of_table[each.table] for each in inside])
        self.rows = np.array([len(each.labels_N) for each in inside])

    def draw(self, rng: np.random.Generator, n_points: int, single: float) -> tuple[np.ndarray, np.ndarray] | None:
        """Points and labels, or None if no table has as many rows."""
        weight = self.weight * (self.rows >= n_points)
        if not weight.any():
            return None
        draw = _several if rng.random() >= single else _one_class if rng.random() < 0.5 else _permuted
        for _ in range(ATTEMPTS):
            table = self.tables[int(rng.choice(len(weight), p=weight / weight.sum()))]
            found = draw(rng, table, n_points)
            if found is not None:
                return found
        return None


def _several(rng: np.random.Generator, table: RealTable, n_points: int) -> tuple[np.ndarray, np.ndarray] | None:
    labels_N = table.labels_N.copy()
    classes = np.flatnonzero(np.bincount(labels_N) >= LEAST_ROWS)
    if len(classes) > 2 and rng.random() < 0.5:
        classes = rng.permutation(classes)[: int(rng.integers(2, len(classes) + 1))]
    inside = np.flatnonzero(np.isin(labels_N, classes))
    if len(inside) < n_points or len(classes) < 2:
        return None
    if len(classes) > 2 and rng.random() < 0.15:
        joined = rng.permutation(classes)[: int(rng.integers(2, len(classes)))]
        labels_N[np.isin(labels_N, joined)] = joined[0]
    share_K = np.ones(table.labels_N.max() + 1)
    if rng.random() < 0.3:
        share_K = np.exp(0.7 * rng.normal(size=len(share_K)))
    share_N = share_K[table.labels_N[inside]]
    rows = rng.choice(inside, n_points, replace=False, p=share_N / share_N.sum())
    labels_N = labels_N[rows]
    count_K = np.bincount(labels_N)
    if (count_K[count_K > 0] < LEAST_ROWS).any() or (count_K > 0).sum() < 2:
        return None
    points_ND = _varied(rng, table, rows)
    labels_N = np.unique(labels_N, return_inverse=True)[1]
    if not _is_varied(points_ND) or visibility(points_ND, labels_N) < VISIBLE:
        return None
    return points_ND, labels_N


def _one_class(rng: np.random.Generator, table: RealTable, n_points: int) -> tuple[np.ndarray, np.ndarray] | None:
    classes = np.flatnonzero(np.bincount(table.labels_N) >= n_points)
    if table.visible < CLEAR or not len(classes):
        return None
    rows = rng.permutation(np.flatnonzero(table.labels_N == rng.choice(classes)))[:n_points]
    points_ND = _varied(rng, table, rows)
    return (points_ND, np.zeros(n_points, dtype=np.int64)) if _is_varied(points_ND) else None


def _permuted(rng: np.random.Generator, table: RealTable, n_points: int) -> tuple[np.ndarray, np.ndarray] | None:
    points_ND = _varied(rng, table, rng.permutation(len(table.labels_N))[:n_points])
    if points_ND.shape[1] < 2:
        return None
    points_ND = rng.permuted(points_ND, axis=0)
    return (points_ND, np.zeros(n_points, dtype=np.int64)) if _is_varied(points_ND) else None


def _varied(rng: np.random.Generator, table: RealTable, rows: np.ndarray) -> np.ndarray:
    """Rows of a table with other columns; numbers are scaled anew, as the estimator would for these rows alone."""
    from coterie_research.training.zeroshot.prior.problems import scaled

    x_ND = table.points_ND[rows]
    kept = np.flatnonzero(np.ptp(x_ND, axis=0) > 0)
    if len(kept) > 2 and rng.random() < 0.5:
        kept = rng.permutation(kept)[: max(2, round(rng.uniform(0.4, 1.0) * len(kept)))]
    kept = np.sort(rng.permutation(kept)[:MOST_COLUMNS])
    is_number = kept < table.n_numbers
    x_ND = x_ND[:, kept]
    x_ND[:, is_number] = scaled(x_ND[:, is_number]) if is_number.any() else x_ND[:, is_number]
    if len(kept) and rng.random() < 0.15:
        more = rng.choice(len(kept), int(rng.integers(1, 2 + len(kept) // 3)))
        x_ND = np.hstack([x_ND, rng.permuted(x_ND[:, more], axis=0)])
    if rng.random() < 0.3:
        x_ND = x_ND * np.exp(rng.uniform(0.1, 0.5) * rng.normal(size=x_ND.shape[1]))
    if rng.random() < 0.3:
        x_ND = x_ND + rng.uniform(0.0, 0.1) * x_ND.std(axis=0) * rng.normal(size=x_ND.shape)
    return x_ND


def _is_varied(points_ND: np.ndarray) -> bool:
    return points_ND.shape[1] > 0 and len(np.unique(points_ND, axis=0)) >= DISTINCT_SHARE * len(points_ND)
