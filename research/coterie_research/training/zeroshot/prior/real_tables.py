"""A folder of real tables with known classes, encoded as the estimator encodes them, and problems drawn from them.

The folder holds one ``NAME.csv`` or ``NAME.csv.gz`` per problem, with the classes in the column ``class``. A file
``index.csv`` may say which problems are of the same table (columns ``file`` and ``table``); without it, every file is a
table of its own. A relative path is below the folder that ``COTERIE_DATA`` names.

Tables under another name are found by their columns: two tables are the same if half of the columns of the smaller
have a column in the other with the same mean, spread and quantiles. All of them are in the same of five folds.

For a problem, a table is drawn, whatever the number of its problems, the more often the more visible its classes are to
nearest neighbours; tables below :data:`VISIBLE` are never drawn. Then rows are drawn, classes left out or joined
(several classes under one label are one cluster of several modes), columns left out, rescaled, moved a little or added
without meaning. A problem is kept if its classes are still visible. Single clusters are the rows of one class of a
table with clear classes, or rows of any table whose columns are permuted, each for itself.
"""

import csv
import hashlib
import os
import tempfile
import warnings
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import KDTree
from scipy.spatial.distance import cdist

FOLDS = 5
LABEL = "class"
VERSION = 3  # of the cached arrays
NEIGHBOURS = 10  # to whose classes that of a row is compared, fewer if classes are small
QUANTILES = np.linspace(0.05, 0.95, 10)
LEAST_DIFFERENT = 6  # values of a column that is compared with others
ALIKE = 0.06  # distance of what is compared of two columns; means, spreads and quantiles in units of the spread
LARGEST = 1e6  # coordinate of a table that is used
SAME_SHARE = 0.5  # of the columns of the smaller of two tables that are the same


class RealTable(NamedTuple):
    """One labelled table as points; the first ``n_numbers`` coordinates are numbers, the others factors."""

    name: str
    table: str
    points_ND: np.ndarray
    labels_N: np.ndarray  # 0 ... K - 1
    n_numbers: int
    visible: float  # agreement of a row's class with those of its nearest neighbours, corrected for chance
    columns_MF: np.ndarray  # what is compared of its columns
    fold: int = 0


@lru_cache(maxsize=2)
def read_corpus(path: str, without: tuple[str, ...] = ()) -> tuple[RealTable, ...]:
    """All problems of a folder except those of the tables ``without``, with their folds."""
    folder = Path(os.environ.get("COTERIE_DATA", "."), path)
    files = {file.name.split(".csv")[0]: file for file in sorted(folder.glob("*.csv*")) if file.name != "index.csv"}
    if not files:
        raise FileNotFoundError(f"There are no tables in {folder}: name a folder of CSV files with a column {LABEL!r}.")
    table_of = {name: name for name in files}
    if (folder / "index.csv").exists():
        with open(folder / "index.csv", newline="") as file:
            table_of |= {row["file"]: row["table"] for row in csv.DictReader(file) if row["file"] in files}
    kept = [name for name in files if table_of[name] not in without]
    read = [each for name in kept if (each := _read(files[name], name, table_of[name])) is not None]
    return tuple(in_folds(read))


def in_folds(tables: Sequence[RealTable]) -> list[RealTable]:
    """The tables with their folds, which follow from the first name of each group of tables that are the same."""
    names = sorted({each.table for each in tables})
    place = {name: number for number, name in enumerate(names)}
    pairs = [(place[one], place[other]) for one, other in same_tables(tables, tables)]
    graph = coo_array((np.ones(len(pairs)), np.reshape(pairs, (-1, 2)).T), shape=(len(names), len(names)))
    _, first, group = np.unique(connected_components(graph, directed=False)[1], return_index=True, return_inverse=True)
    fold = {name: zlib.crc32(names[first[group[number]]].encode()) % FOLDS for name, number in place.items()}
    return [each._replace(fold=fold[each.table]) for each in tables]


def same_tables(some: Sequence[RealTable], others: Sequence[RealTable]) -> set[tuple[str, str]]:
    """Pairs of different names of tables whose columns are the same."""
    mine, its = [[one for one in each if len(one.columns_MF)] for each in (some, others)]
    if not mine or not its:
        return set()
    place_A, place_B = (np.repeat(np.arange(len(each)), [len(one.columns_MF) for one in each]) for each in (mine, its))
    trees = [KDTree(np.concatenate([one.columns_MF for one in each])) for each in (mine, its)]
    matched: dict[tuple[int, int], tuple[set[int], set[int]]] = {}
    for a, near in enumerate(trees[0].query_ball_tree(trees[1], ALIKE)):
        for b in near:
            columns = matched.setdefault((int(place_A[a]), int(place_B[b])), (set(), set()))
            columns[0].add(a)
            columns[1].add(b)
    found = set()
    for (i, j), columns in matched.items():
        least = min(len(mine[i].columns_MF), len(its[j].columns_MF))
        if mine[i].table != its[j].table and min(map(len, columns)) >= max(SAME_SHARE * least, min(2, least)):
            found.add((mine[i].table, its[j].table))
    return found


def compared(columns: Iterable[np.ndarray]) -> np.ndarray:
    """(M, F) mean, spread and quantiles of the columns that have enough different values."""
    found = []
    for values in columns:
        if values.dtype == object:
            count = Counter(value for value in values if value is not None)
            if len(count) < LEAST_DIFFERENT:
                continue
            values = np.repeat(np.arange(len(count)), sorted(count.values(), reverse=True)).astype(float)
        values = values[np.isfinite(values)]
        if len(np.unique(values)) < LEAST_DIFFERENT:
            continue
        middle, spread = values.mean(), values.std()
        if spread > 0 and np.isfinite(spread):
            quantiles = (np.quantile(values, QUANTILES) - middle) / spread
            found.append([np.log(spread), np.arcsinh(middle / spread), *quantiles])
    return np.array(found).reshape(-1, 2 + len(QUANTILES))


def visibility(points_ND: np.ndarray, labels_N: np.ndarray) -> float:
    """Share of a row's nearest neighbours that have its class, corrected for chance; 0 for one class."""
    count_K = np.bincount(labels_N)
    count_K = count_K[count_K > 0]
    chance = float(((count_K / len(labels_N)) ** 2).sum())
    if len(count_K) < 2:
        return 0.0
    neighbours = int(np.clip(np.median(count_K) // 2, 1, NEIGHBOURS))
    distance_NN = cdist(points_ND, points_ND, "sqeuclidean")
    np.fill_diagonal(distance_NN, np.inf)
    near_NQ = np.argpartition(distance_NN, neighbours - 1, axis=1)[:, :neighbours]
    return float(((labels_N[near_NQ] == labels_N[:, None]).mean() - chance) / (1 - chance))


def _read(file: Path, name: str, table: str) -> RealTable | None:
    """One table, from the cache if it is there; None if it cannot be encoded or has one class."""
    status = file.stat()
    key = hashlib.sha256(f"{VERSION} {file.resolve()} {status.st_size} {status.st_mtime_ns}".encode()).hexdigest()[:24]
    cached = Path(tempfile.gettempdir()) / f"coterie-corpus-{os.getuid() if hasattr(os, 'getuid') else 0}"
    cached.mkdir(mode=0o700, exist_ok=True)
    path = cached / f"{key}.npz"
    if not path.exists():
        from coterie.files import replacing

        encoded = encode(file)
        with replacing(path) as temporary, open(temporary, "wb") as opened:
            np.savez(opened, **encoded)  # type: ignore[arg-type]
    with np.load(path) as saved:
        if len(saved["points_ND"]) == 0:
            return None
        return RealTable(
            name,
            table,
            saved["points_ND"].astype(np.float64),
            saved["labels_N"],
            int(saved["n_numbers"]),
            float(saved["visible"]),
            saved["columns_MF"],
        )


def encode(file: Path) -> dict[str, np.ndarray]:
    """The arrays of one file; without rows if nothing can be compared."""
    import pandas as pd

    from coterie.tables.columns import TableError
    from coterie.tables.encoding import Encoding
    from coterie.tables.table import Table

    frame = pd.read_csv(file, low_memory=False)
    labels_N = pd.factorize(frame[LABEL], sort=True)[0]
    nothing = {"points_ND": np.zeros((0, 0)), "labels_N": labels_N[:0], "n_numbers": np.array(0)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            used = [column for column in Table.of(frame.drop(columns=LABEL)).read_columns() if column.used]
            columns = [column.values for column in used]
            encoding = Encoding.learn(used)
            points_ND = encoding.points(columns)
        except (TableError, ValueError, IndexError):
            return nothing | {"visible": np.array(0.0), "columns_MF": np.zeros((0, 2 + len(QUANTILES)))}
    if points_ND.shape[1] == 0 or not (np.abs(points_ND) < LARGEST).all() or labels_N.max() < 1 or labels_N.min() < 0:
        return nothing | {"visible": np.array(0.0), "columns_MF": compared(columns)}
    n_numbers = (
        sum(values.dtype != object for values in columns) if encoding.factors is not None else points_ND.shape[1]
    )
    return {
        "points_ND": points_ND.astype(np.float32),
        "labels_N": labels_N,
        "n_numbers": np.array(n_numbers),
        "visible": np.array(visibility(points_ND, labels_N)),
        "columns_MF": compared(columns),
    }


# --- problems -----------------------------------------------------------------------------------------------

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
