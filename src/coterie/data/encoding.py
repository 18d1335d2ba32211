"""Mixed tables as points: numbers scaled, moments as days, gaps filled, categories by what they share.

A gap takes the value of the row that is most like its own in what is known of both, among some rows that are kept. (The
median of the column often lies between clusters, and rows filled by it would look like one.)

Every value of a category as a column of its own would part the rows into islands, one for each combination of values,
and those hide the clusters. So categories count only by the factors that they share with other columns: the principal
axes of the whole table (numbers with spread one, values weighted by their rarity) whose variance is above what chance
gives to columns that have nothing in common. A category that goes with nothing else counts nothing, unless there is
nothing else.
"""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

LEVELS = 32  # of a category; rarer ones share a level
FACTOR_WEIGHT = 0.7  # of categories beside numbers, chosen on drawn mixed tables (results/LOG.md)
DONORS = 256  # rows that gaps are filled from
FILLED_AT_ONCE = 50_000  # rows
FACTOR_ROWS = 50_000  # from which factors are found
SECONDS_OF_A_DAY = 86_400
MOMENTS = ("date", "datetime", "timedelta")  # what pandas calls objects that are read as days
UTC = timezone.utc


@dataclass
class Column:
    """How one column is read: a number by its middle and spread, a category by its levels and their size.

    ``rest`` says that a last level stands for values that are rare or missing.
    """

    middle: float = 0.0
    spread: float = 1.0
    levels: list[str] | None = None
    rest: bool = True

    @property
    def width(self) -> int:
        return 1 if self.levels is None else len(self.levels) + self.rest


@dataclass
class Encoding:
    """``factors`` (D, F) makes F coordinates of all D scaled numbers; None where there are no categories.

    ``donors`` (R, D) are rows that gaps are filled from, NaN where they have gaps themselves; None where there were no
    gaps, and later ones get the median.
    """

    columns: list[Column] = field(default_factory=list)
    factors: np.ndarray | None = None
    donors: np.ndarray | None = None

    @classmethod
    def of(cls, columns: Sequence[np.ndarray], *, scale: bool = True) -> "Encoding":
        """``columns``: float arrays (NaN is missing) and object arrays (None is missing).

        Without ``scale`` every spread is one: ``points`` keeps distances as they are.
        """
        read = [_category(values) if values.dtype == object else _number(values) for values in columns]
        made = cls(read if scale else [replace(column, spread=1.0) for column in read])
        made.donors = made._chosen_donors(columns)
        if made.of_category.any():
            every = -(-len(columns[0]) // FACTOR_ROWS)
            made.factors = _factors(made.numbers([values[::every] for values in columns]), made)
        return made

    def numbers(self, columns: Sequence[np.ndarray], names: Sequence[str] | None = None) -> np.ndarray:
        """(N, D) numbers in their own units, gaps filled; 1 for the level of a category, 0 for others.

        ``names`` are for the message that refuses a column of another kind than before.
        """
        called = [f"Column {number}" for number in range(len(columns))] if names is None else [repr(n) for n in names]
        numbers_ND = np.concatenate([_read(*each) for each in zip(self.columns, columns, called)], axis=1)
        if self.donors is not None:
            gaps_ND = self._gaps(columns)
            rows = np.flatnonzero(gaps_ND.any(axis=1))
            for block in np.array_split(rows, -(-len(rows) // FILLED_AT_ONCE) or 1):
                self._fill(numbers_ND, gaps_ND, block)
        return numbers_ND

    def _gaps(self, columns: Sequence[np.ndarray]) -> np.ndarray:
        """(N, D) which numbers are not known."""
        missing = [
            np.isnan(values) if values.dtype != object and column.levels is None else np.zeros(len(values), dtype=bool)
            for column, values in zip(self.columns, columns)
        ]
        return np.repeat(np.column_stack(missing), self._widths, axis=1)

    def _chosen_donors(self, columns: Sequence[np.ndarray]) -> np.ndarray | None:
        gaps_ND = self._gaps(columns)
        if not gaps_ND.any():
            return None
        rows = np.linspace(0, len(gaps_ND) - 1, min(DONORS, len(gaps_ND))).astype(int)
        return np.where(gaps_ND[rows], np.nan, self.numbers([values[rows] for values in columns]))

    def _fill(self, numbers_ND: np.ndarray, gaps_ND: np.ndarray, rows: np.ndarray) -> None:
        """Gaps of some rows by the nearest donor that knows the column; near in what is known of both."""
        assert self.donors is not None
        known_RD = ~np.isnan(self.donors)
        donor_RD = np.where(known_RD, (self.donors - self.middle) / self.spread, 0.0)
        seen_MD = (~gaps_ND[rows]).astype(np.float64)
        row_MD = (numbers_ND[rows] - self.middle) / self.spread * seen_MD
        sq_MR = row_MD**2 @ known_RD.T - 2 * row_MD @ donor_RD.T + seen_MD @ (donor_RD**2).T
        sq_MR -= 2 * seen_MD @ known_RD.T  # what a donor does not know counts as for two rows drawn at random
        for d in np.flatnonzero(gaps_ND[rows].any(axis=0) & known_RD.any(axis=0)):
            gap_M, able_R = gaps_ND[rows, d], np.flatnonzero(known_RD[:, d])
            nearest = able_R[sq_MR[np.ix_(gap_M, able_R)].argmin(axis=1)]
            numbers_ND[rows[gap_M], d] = self.donors[nearest, d]

    def points(self, columns: Sequence[np.ndarray]) -> np.ndarray:
        """(N, E) where the rows lie, each on its own: the numbers scaled, then the factors of the categories."""
        return self.placed(self.numbers(columns))

    def placed(self, numbers_ND: np.ndarray) -> np.ndarray:
        """Where rows of ``numbers`` lie."""
        scaled_ND = (numbers_ND - self.middle) / self.spread
        if self.factors is None:
            return scaled_ND
        return np.hstack([scaled_ND[:, ~self.of_category], scaled_ND @ self.factors])

    def filled(self, columns: Sequence[np.ndarray]) -> np.ndarray:
        """The numbers in their own units, gaps filled; categories are NaN. (N, columns)"""
        result = np.full((len(columns[0]), len(columns)), np.nan)
        result[:, [column.levels is None for column in self.columns]] = self.numbers(columns)[:, ~self.of_category]
        return result

    @property
    def middle(self) -> np.ndarray:
        """(D,) what ``placed`` puts at zero."""
        return np.repeat([column.middle for column in self.columns], self._widths)

    @property
    def spread(self) -> np.ndarray:
        """(D,) what ``placed`` divides by."""
        return np.repeat([column.spread for column in self.columns], self._widths)

    @property
    def of_category(self) -> np.ndarray:
        """(D,) whether a number stands for a level of a category."""
        return np.repeat([column.levels is not None for column in self.columns], self._widths)

    @property
    def _widths(self) -> list[int]:
        return [column.width for column in self.columns]

    def names(self, columns: Sequence[str]) -> list[str]:
        """(D,) names of the numbers, from those of the columns."""
        made = []
        for column, name in zip(self.columns, columns):
            if column.levels is None:
                made.append(name)
            else:
                rest = "(other)" if "other" in column.levels else "other"
                made += [f"{name} = {level}" for level in column.levels] + [f"{name} = {rest}"] * column.rest
        return made

    def place_names(self, columns: Sequence[str]) -> list[str]:
        """(E,) names of the coordinates of ``points``."""
        numbers = [name for column, name in zip(self.columns, columns) if column.levels is None]
        count = 0 if self.factors is None else self.factors.shape[1]
        return numbers + [f"categories, axis {number + 1}" for number in range(count)]

    def original(self, points_NE: np.ndarray) -> np.ndarray:
        """The numbers of points; only where there are no categories, whose factors cannot be undone."""
        if self.factors is not None:
            raise ValueError("Categories cannot be told from their factors.")
        return points_NE * self.spread + self.middle

    def to_json(self) -> str:
        arrays = {name: getattr(self, name) for name in ("factors", "donors")}
        stored = {name: None if array is None else _json_rows(array) for name, array in arrays.items()}
        return json.dumps({"columns": [asdict(column) for column in self.columns], **stored})

    @classmethod
    def from_json(cls, text: str) -> "Encoding":
        stored = json.loads(text)
        columns = [Column(**values) for values in stored["columns"]]
        made = cls(columns)
        d = len(made.spread)
        if stored["factors"] is not None:
            made.factors = np.array(stored["factors"]).reshape(d, -1)
        if stored["donors"] is not None:
            made.donors = np.array(stored["donors"], dtype=np.float64).reshape(-1, d)
        return made


def _json_rows(array: np.ndarray) -> list[list[float | None]]:
    return [[None if np.isnan(value) else value for value in row] for row in array.tolist()]


def tells_rows_apart(values: np.ndarray) -> bool:
    """Whether a column of text is a name of each row, or nearly: more values than half of the rows."""
    if values.dtype != object:
        return False
    known = [value for value in values if value is not None]
    return len(set(known)) > max(LEVELS, len(known) / 2)


def is_empty(values: np.ndarray) -> bool:
    """Whether nothing is known in a column."""
    return all(value is None for value in values) if values.dtype == object else bool(np.isnan(values).all())


def _factors(numbers_ND: np.ndarray, encoding: Encoding) -> np.ndarray:
    """(D, F) what categories share with other columns, for ``placed``: a map of all scaled numbers, whose own part in
    the shared axes it takes along."""
    n, d = numbers_ND.shape
    mean_D, category_D = numbers_ND.mean(axis=0), encoding.of_category
    unit_D = np.where(category_D, np.sqrt(np.maximum(mean_D, 1 / n)), numbers_ND.std(axis=0))
    unit_D = np.where(unit_D > 0, unit_D, 1.0)
    z_ND = (numbers_ND - mean_D) / unit_D
    variance_D, axes_DD = np.linalg.eigh(z_ND.T @ z_ND / n)
    shared_D = variance_D > (1 + np.sqrt(d / n)) ** 2  # the largest that chance gives (Marchenko and Pastur)
    weight = FACTOR_WEIGHT
    if not shared_D.any() and category_D[z_ND.std(axis=0) > 0].all():
        shared_D, weight = variance_D > 1e-9, 1.0
    axes_DF = axes_DD[:, shared_D]
    onto_DD = axes_DF @ axes_DF.T * category_D  # from z to the part of the categories that is shared
    part_ND = z_ND @ onto_DD
    variance_D, turn_DD = np.linalg.eigh(part_ND.T @ part_ND / n)  # the same points in as few coordinates as possible
    turn_DF = turn_DD[:, variance_D > 1e-9][:, ::-1]
    turn_DF = turn_DF * np.sign(turn_DF[np.abs(turn_DF).argmax(axis=0), np.arange(turn_DF.shape[1])])
    return weight * (encoding.spread / unit_D)[:, None] * (onto_DD @ turn_DF)


def _number(values: np.ndarray) -> Column:
    known = values[~np.isnan(values)]
    if not len(known):
        return Column()
    unit = float(np.abs(known).max()) or 1.0  # squares of very large or small numbers would not be numbers
    low, middle, high = np.percentile(known / unit, (25, 50, 75))
    reach = 3 * (high - low) if high > low else np.inf  # single far values do not count for the spread
    spread = unit * float(np.clip(known / unit, low - reach, high + reach).std())
    return Column(unit * float(middle), spread if spread > 0 else 1.0)


def _category(values: np.ndarray) -> Column:
    common = Counter(value for value in values if value is not None).most_common()
    common = sorted(common, key=lambda one: (-one[1], one[0]))[:LEVELS]
    levels, counts = [name for name, _ in common], [count for _, count in common]
    others = len(values) - sum(counts)
    shares = np.array([*counts, others]) / max(1, len(values))
    apart = 1 - float((shares**2).sum())  # chance that two rows differ
    return Column(0.0, float(np.sqrt(apart)) if apart > 0 else 1.0, levels, rest=others > 0)


def _read(column: Column, values: np.ndarray, called: str) -> np.ndarray:
    if column.levels is None:
        if values.dtype == object:
            values = _refused_unless_empty(values, f"{called} held numbers when it was fitted and holds text")
        return np.where(np.isnan(values), column.middle, values)[:, None]
    place = {name: number for number, name in enumerate(column.levels)}
    if values.dtype != object:  # categories of digits, in a table without the others
        said = _texts([None if np.isnan(value) else f"{value:.15g}" for value in values])
        if not place.keys() & set(said):
            _refused_unless_empty(said, f"{called} held text when it was fitted and holds numbers")
        values = said
    found = [place.get(value, len(place)) for value in values]
    return np.eye(len(column.levels) + 1)[found][:, : column.width]  # without a rest, what was never seen is no level


def _refused_unless_empty(values: np.ndarray, what: str) -> np.ndarray:
    if not is_empty(values):
        raise ValueError(f"{what} now: bring it to the form that it had.")
    return np.full(len(values), np.nan)


def _texts(values: Iterable[str | None]) -> np.ndarray:
    texts = list(values)
    result = np.empty(len(texts), dtype=object)
    result[:] = texts
    return result


def columns_of(X: Any) -> list[np.ndarray]:
    """A DataFrame's or array's columns, each as ``values_of``."""
    if not hasattr(X, "columns"):
        return list(np.asarray(X, dtype=np.float64).T)
    if hasattr(X, "to_pandas"):  # polars and Arrow
        X = X.to_pandas()
    return [values_of(X.iloc[:, place]) for place in range(X.shape[1])]


def holds_moments(series: pd.Series) -> bool:
    """Whether a column holds dates, times of dates or durations, which are read as days."""
    if getattr(series.dtype, "kind", "O") in "mM":
        return True
    return series.dtype == object and pd.api.types.infer_dtype(series, skipna=True) in MOMENTS


def values_of(series: pd.Series) -> np.ndarray:
    """One column: floats with NaN where something is missing or, where it does not hold numbers, texts and None."""
    missing = series.isna().to_numpy()
    if holds_moments(series):
        return np.where(missing, np.nan, _microseconds(series) / (1e6 * SECONDS_OF_A_DAY))
    if getattr(series.dtype, "kind", "O") in "iufb" or str(series.dtype) == "boolean":
        return series.to_numpy(dtype=np.float64, na_value=np.nan)
    values = [None if gone else value for value, gone in zip(series.tolist(), missing)]
    declared = isinstance(series.dtype, pd.CategoricalDtype)
    if not declared and all(value is None or isinstance(value, int | float | np.number | Decimal) for value in values):
        return np.array([np.nan if value is None else float(value) for value in values])
    texts = [None if value is None else str(value) for value in values]
    return _texts(text if text is not None and text.strip() else None for text in texts)


def _microseconds(series: pd.Series) -> np.ndarray:
    """Moments since 1970, or durations; anything where one is missing."""
    if isinstance(series.dtype, pd.ArrowDtype):
        series = series.astype(object)
    if series.dtype != object:
        return series.dt.as_unit("us").array.asi8
    known: list[Any] = [None if pd.isna(value) else value for value in series]
    known = [at.astimezone(UTC).replace(tzinfo=None) if getattr(at, "tzinfo", None) else at for at in known]
    kind = "m8" if any(isinstance(value, timedelta) for value in known) else "M8"
    return np.array(known, dtype=f"{kind}[us]").astype(np.int64)
