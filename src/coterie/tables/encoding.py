"""Tables as points: numbers are scaled, dates are days, missing values are filled, categories become shared factors.

A missing number is taken from the most similar row, where similarity is measured in the columns that both rows know,
among a fixed sample of donor rows. (The median of a column often lies between clusters; rows that are filled with it
would form a cluster of their own.)

One column per value of a category would split the rows into one group per combination of values and hide the clusters.
Categories therefore contribute only the factors that they share with other columns: the principal axes of the whole
table (numbers with standard deviation one, levels weighted by their rarity) whose variance exceeds what unrelated
columns produce by chance. A category that is unrelated to every other column is ignored, unless there are no others.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property

import numpy as np

from coterie.checkpoints.json_shapes import check
from coterie.geometry.spread import principal_axes
from coterie.tables import circles, common_scale
from coterie.tables.column_encoding import ColumnEncoding
from coterie.tables.columns import Column, as_texts, is_empty
from coterie.tables.kinds import CATEGORY, CYCLE, LATITUDE, LONGITUDE, NUMBER, ROUND, USABLE

FACTOR_WEIGHT = 0.7  # of categories beside numbers, chosen on drawn mixed tables (results/LOG.md)
COPIES_OF_ROWS = 4  # a copied table has more different rows than so many times the copies of each
DONORS = 256  # rows from which missing values are taken
FAR = 10.0  # spreads from the middle beyond which values do not count for factors
FILLED_AT_ONCE = 50_000  # rows
FACTOR_ROWS = 50_000  # from which factors are computed
COLUMN = {  # in a file
    **{"middle": float, "spread": float, "name": str, "levels?": (None, [str]), "rest?": bool, "log?": (None, float)},
    **{"kind?": {*USABLE}, "sources?": [str], "spelling?": str, "unit?": str, "absent?": [float]},
    **{"cycle?": float},
}
STORED = {
    "columns": [COLUMN], "complete?": bool, "why?": str, "library?": float,
    "scale?": {common_scale.EACH, *common_scale.WORDS}, "factors": (None, list), "donors": (None, list),
}  # fmt: skip
MOST_BELOW = 20.0  # spreads below the median at which values of other tables end, on a log scale


@dataclass
class Encoding:
    """How columns become values in their own units, and values become points.

    ``factors`` (D, F) maps all D scaled values to F coordinates; it is None if no column is a category. ``donors``
    (R, D) are the rows from which missing values are filled, NaN where they have missing values themselves; it is None
    if nothing was missing, and later missing values then become the median. A ``complete`` encoding accepts only
    numbers without missing values. ``scale`` says whether columns are scaled one by one or together
    (:mod:`coterie.tables.common_scale`), and ``why``, if that was recognised; ``library`` is the total of a
    row of counts.
    """

    columns: list[ColumnEncoding] = field(default_factory=list)
    factors: np.ndarray | None = None
    donors: np.ndarray | None = None
    complete: bool = False
    scale: str = common_scale.EACH
    why: str = ""
    library: float = 1.0

    @classmethod
    def of(
        cls, columns: Sequence[np.ndarray], names: Sequence[str] | None = None, *, scale: bool | str = "auto"
    ) -> "Encoding":
        """Learn an encoding from columns of floats (NaN is missing) and of texts (None is missing)."""
        called = [""] * len(columns) if names is None else names
        kinds = [CATEGORY if values.dtype == object else NUMBER for values in columns]
        return cls.learn([Column(*one) for one in zip(called, kinds, columns)], scale=scale)

    @classmethod
    def learn(cls, read: Sequence[Column], *, scale: bool | str = "auto") -> "Encoding":
        """Learn an encoding of columns of a table; those that are not used must be left out.

        Columns are scaled one by one (True), not at all (False, every spread is one), all alike ("common"), by the
        length of each row ("cosine") or as counts ("counts"); "auto" chooses by :mod:`coterie.tables.common_scale`.
        """
        columns, made = [column.values for column in read], cls()
        if scale == "auto":
            alike = not any(column.kind in ROUND for column in read)
            made.scale, made.why = common_scale.shared_scale(columns if alike else (), [column.name for column in read])
        elif isinstance(scale, str):
            made.scale = scale
        each = scale is not False and made.scale == common_scale.EACH
        for column in read:
            cycle = 360.0 if column.kind == LONGITUDE else column.cycle
            one = ColumnEncoding.of(column.values, logs=each and column.kind not in ROUND, cycle=cycle)
            made.columns.append(
                replace(
                    one if each else replace(one, spread=1.0),
                    name=column.name, kind=column.kind, sources=list(column.sources), spelling=column.spelling,
                    unit=column.unit, absent=list(column.absent),
                )
            )  # fmt: skip
        if made.scale != common_scale.EACH:
            made._share_scale(columns)
        for places in made._of_kinds(LATITUDE, LONGITUDE) if each else ():
            pair = [made.columns[place] for place in places]
            known = np.isfinite(columns[places[0]] + columns[places[1]])
            pair[0].spread = pair[1].spread = 1.0
            ground = circles.coordinates([columns[place][known] for place in places], pair)
            pair[0].spread = pair[1].spread = (
                float(np.sqrt(ground.var(axis=0).sum() / 2)) or 1.0 if known.any() else 1.0
            )
        if (missing_ND := made._missing(columns)).any():
            rows = np.linspace(0, len(missing_ND) - 1, min(DONORS, len(missing_ND))).astype(int)
            made.donors = np.where(missing_ND[rows], np.nan, made.values([values[rows] for values in columns]))
        if made.of_category.any():
            every = -(-len(columns[0]) // FACTOR_ROWS)
            made.factors = _factors(made.values([values[::every] for values in columns]), made)
        return made

    def _of_kinds(self, *kinds: str) -> list[tuple[int, ...]]:
        """Places of the columns of these kinds, the first with the first and so on."""
        return list(zip(*([place for place, one in enumerate(self.columns) if one.kind == kind] for kind in kinds)))

    @cached_property
    def _rounds(self) -> list[tuple[int, ...]]:
        """Places of columns that make coordinates together: on a circle, or on the globe."""
        separate = self.scale == common_scale.EACH and not self.complete
        return [*self._of_kinds(CYCLE), *self._of_kinds(LATITUDE, LONGITUDE)] if separate else []

    @cached_property
    def _plain(self) -> list[int]:
        """Places of columns that are one coordinate each."""
        inside = {place for places in self._rounds for place in places}
        return [place for place, one in enumerate(self.columns) if one.levels is None and place not in inside]

    def _share_scale(self, columns: Sequence[np.ndarray]) -> None:
        """One spread for all numbers, so that their mean variance is one."""
        if self.scale != common_scale.COMMON:
            if any(values.dtype == object or np.isnan(values).any() for values in columns):
                raise ValueError(f"scale={self.scale!r} needs numbers without missing values: use scale='common'.")
            columns = list(self._rows_alike(np.column_stack(columns), learn=True).T)
        for column, values in zip(self.columns, columns):
            if column.levels is None:
                column.middle = float(np.nanmean(values)) if self.scale == common_scale.COMMON else 0.0
                column.spread = float(np.nanstd(values))
        numbers = [column for column in self.columns if column.levels is None]
        spread = float(np.sqrt(np.mean([column.spread**2 for column in numbers or self.columns]))) or 1.0
        for column in numbers:
            column.spread = spread

    def _rows_alike(self, values_ND: np.ndarray, learn: bool = False) -> np.ndarray:
        """Values with rows of equal length or total, where the scale asks for that."""
        if self.scale == common_scale.COSINE:
            length_N1 = np.sqrt(np.einsum("nd,nd->n", values_ND, values_ND))[:, None]
            return values_ND / np.where(length_N1 > 0, length_N1, 1.0)
        if self.scale == common_scale.COUNTS:
            total_N1 = values_ND.sum(axis=1, keepdims=True)
            if learn and (values_ND < 0).any():
                raise ValueError("scale='counts' needs numbers that are not negative: use scale='common'.")
            self.library = (float(np.median(total_N1)) or 1.0) if learn else self.library
            return np.log1p(np.maximum(values_ND, 0.0) * (self.library / np.where(total_N1 > 0, total_N1, 1.0)))
        return values_ND

    @classmethod
    def affine(
        cls, names: Sequence[str], mean: np.ndarray | None = None, scale: np.ndarray | None = None
    ) -> "Encoding":
        """An encoding of complete numbers: unchanged, or with ``mean`` subtracted and divided by ``scale``."""
        middle = np.zeros(len(names)) if mean is None else mean
        spread = np.ones(len(names)) if scale is None else scale
        learned = [ColumnEncoding(m, s, name=name) for m, s, name in zip(middle.tolist(), spread.tolist(), names)]
        return cls(learned, complete=True)

    def encode(self, columns: "Sequence[np.ndarray] | np.ndarray") -> "Encoded":
        """Rows as values and points. ``columns`` is a matrix of numbers if the encoding is complete."""
        values = columns if isinstance(columns, np.ndarray) else self.values(columns)
        return Encoded(self, values, self.place(values), self._empty(columns))

    def _empty(self, columns: "Sequence[np.ndarray] | np.ndarray") -> tuple[str, ...]:
        """The names of columns without any value."""
        if isinstance(columns, np.ndarray):
            return ()
        read = [(one, values) for one, values in zip(self.columns, columns) if len(values) and not one.is_box]
        return tuple(
            one.name
            for one, values in read
            if all(Column("", one.kind, some).missing.all() for some in (values[:1], values))
        )

    def values(self, columns: Sequence[np.ndarray]) -> np.ndarray:
        """(N, D) values in their own units, missing ones filled; 1 for the level of a category and 0 for the others."""
        values_ND = np.concatenate([self._read(i, one) for i, one in enumerate(columns)], axis=1)
        if self.donors is not None:
            missing_ND = self._missing(columns)
            rows = np.flatnonzero(missing_ND.any(axis=1))
            for block in np.array_split(rows, -(-len(rows) // FILLED_AT_ONCE) or 1):
                self._fill(values_ND, missing_ND, block)
        return values_ND

    def points(self, columns: Sequence[np.ndarray]) -> np.ndarray:
        """(N, E) the points of rows: the scaled numbers, then the factors of the categories."""
        return self.place(self.values(columns))

    def place(self, values_ND: np.ndarray) -> np.ndarray:
        """The points of values."""
        if self.is_identity:
            return values_ND
        scaled_ND = self._scaled(self._rows_alike(values_ND)).astype(values_ND.dtype)
        if self.factors is None and not self._rounds:
            return scaled_ND
        parts = [scaled_ND[:, self._starts[self._plain]]]
        for places in self._rounds:
            own = [self.columns[place] for place in places]
            parts.append(circles.coordinates([values_ND[:, self._starts[place]] for place in places], own))
        if self.factors is not None:
            parts.append(scaled_ND.clip(-self._reach, self._reach) @ self.factors)
        return np.hstack(parts)

    @property
    def _reach(self) -> np.ndarray:
        """(D,) how many spreads from the middle values count for factors: one row of totals would turn these."""
        return np.where(self.of_category | (self.scale != common_scale.EACH), np.inf, FAR)

    def original(self, points_NE: np.ndarray) -> np.ndarray:
        """The values of points, for an encoding without categories whose rows keep their lengths."""
        if not self.is_invertible:
            raise ValueError("The values of categories, or of rows of equal length, cannot be computed from points.")
        if self.is_identity:
            return points_NE
        values_ND = points_NE * self.spread + self.middle
        for place, column in enumerate(self.columns):
            if column.log is not None:
                values_ND[:, place] = np.exp(values_ND[:, place]) - column.log
        return values_ND

    def logged(self, values_ND: np.ndarray) -> np.ndarray:
        """Values, with logarithms in the columns that are compared by them."""
        if self._logs:
            values_ND = values_ND.astype(np.float64)
            for place, shift in self._logs.items():
                least = np.exp(self.middle[place] - MOST_BELOW * self.spread[place])  # of other tables: 0 has no log
                values_ND[:, place] = np.log(np.maximum(values_ND[:, place] + shift, least))
        return values_ND

    def _scaled(self, values_ND: np.ndarray) -> np.ndarray:
        return (self.logged(values_ND) - self.middle) / self.spread

    @cached_property
    def _logs(self) -> dict[int, float]:
        """The places of values that are compared by their logarithm, and what is added before."""
        return {int(at): column.log for at, column in zip(self._starts, self.columns) if column.log is not None}

    @cached_property
    def is_identity(self) -> bool:
        """Whether points are the values themselves."""
        return self.complete and not self.middle.any() and bool((self.spread == 1).all())

    @property
    def is_invertible(self) -> bool:
        """Whether each coordinate of a point is a function of one value."""
        return self.factors is None and self.scale in (common_scale.EACH, common_scale.COMMON) and not self._rounds

    @property
    def has_categories(self) -> bool:
        return self.factors is not None

    @property
    def has_shared_factors(self) -> bool:
        """Whether the categories share anything with other columns; otherwise they have no influence."""
        return self.factors is not None and self.factors.shape[1] > 0

    @property
    def names(self) -> list[str]:
        """Names of the columns that are encoded."""
        return [column.name for column in self.columns]

    @property
    def sources(self) -> list[str]:
        """Names of the columns of the table behind them: several for a category with one column per value."""
        return list(dict.fromkeys(source for column in self.columns for source in column.sources or [column.name]))

    @property
    def log_names(self) -> list[str]:
        """Names of the columns that are compared by their logarithm."""
        return [column.name for column in self.columns if column.log is not None]

    @property
    def value_names(self) -> list[str]:
        """(D,) names of the values."""
        made = []
        for column in self.columns:
            if column.levels is None:
                made.append(column.name)
            else:
                made += [f"{column.name} = {level}" for level in column.named_levels]
        return made

    @property
    def point_names(self) -> list[str]:
        """(E,) names of the coordinates of points."""
        numbers = [self.columns[place].name for place in self._plain]
        numbers += [name for places in self._rounds for name in circles.names([self.columns[one] for one in places])]
        count = 0 if self.factors is None else self.factors.shape[1]
        return numbers + [f"categories, axis {number + 1}" for number in range(count)]

    @cached_property
    def middle(self) -> np.ndarray:
        """(D,) what :meth:`place` subtracts."""
        return np.repeat([column.middle for column in self.columns], self._widths)

    @cached_property
    def spread(self) -> np.ndarray:
        """(D,) what :meth:`place` divides by."""
        return np.repeat([column.spread for column in self.columns], self._widths)

    @cached_property
    def of_category(self) -> np.ndarray:
        """(D,) whether a value stands for a level of a category."""
        return np.repeat([column.levels is not None for column in self.columns], self._widths)

    @property
    def _widths(self) -> list[int]:
        return [column.width for column in self.columns]

    @property
    def _starts(self) -> np.ndarray:
        """(columns + 1,) the place of the first value of every column."""
        return np.cumsum([0, *self._widths])

    def _read(self, place: int, values: np.ndarray) -> np.ndarray:
        """The values of one column; missing numbers become the median."""
        column = self.columns[place]
        called = repr(column.name) if column.name else f"Column {place}"
        if column.levels is None:
            if values.dtype == object:
                values = _require_empty(values, f"{called} held numbers during fit and now holds text")
            return np.where(np.isnan(values), column.median, column.around(values))[:, None]
        number = {name: number for number, name in enumerate(column.levels)}
        if values.dtype != object:  # categories of digits, in a table without the other values
            texts = as_texts(None if np.isnan(value) else f"{value:.15g}" for value in values)
            if not number.keys() & set(texts):
                _require_empty(texts, f"{called} held text during fit and now holds numbers")
            values = texts
        found = [number.get(value, len(number)) for value in values]
        return np.eye(len(number) + 1)[found][:, : column.width]  # without a rest, an unseen value has no level

    def _missing(self, columns: Sequence[np.ndarray]) -> np.ndarray:
        """(N, D) which values are missing. A blank beside one level is a value."""
        missing = [
            np.zeros(len(values), dtype=bool) if column.is_box else Column("", column.kind, values).missing
            for column, values in zip(self.columns, columns)
        ]  # fmt: skip
        return np.repeat(np.column_stack(missing), self._widths, axis=1)

    def _fill(self, values_ND: np.ndarray, missing_ND: np.ndarray, rows: np.ndarray) -> None:
        """Fill some rows from the nearest donor that knows the column, by distance in the columns known to both."""
        assert self.donors is not None
        known_RD = ~np.isnan(self.donors)
        donor_RD = np.where(known_RD, self._scaled(np.where(known_RD, self.donors, 0.0)), 0.0)
        seen_MD = (~missing_ND[rows]).astype(np.float64)
        row_MD = self._scaled(values_ND[rows]) * seen_MD
        sq_MR = row_MD**2 @ known_RD.T - 2 * row_MD @ donor_RD.T + seen_MD @ (donor_RD**2).T
        sq_MR -= 2 * seen_MD @ known_RD.T  # a column that the donor lacks counts as for two rows drawn at random
        for d in np.flatnonzero(missing_ND[rows].any(axis=0) & known_RD.any(axis=0)):
            missing_M, able_R = missing_ND[rows, d], np.flatnonzero(known_RD[:, d])
            nearest = able_R[sq_MR[np.ix_(missing_M, able_R)].argmin(axis=1)]
            values_ND[rows[missing_M], d] = self.donors[nearest, d]

    def to_json(self) -> str:
        arrays = {name: getattr(self, name) for name in ("factors", "donors")}
        stored = {name: None if array is None else _json_rows(array) for name, array in arrays.items()}
        columns = [asdict(column) for column in self.columns]
        rows = {"scale": self.scale, "why": self.why, "library": self.library}
        return json.dumps({"columns": columns, "complete": self.complete, **rows, **stored})

    @classmethod
    def from_json(cls, text: str) -> "Encoding":
        """The encoding that :meth:`to_json` described, or a ValueError if the text is damaged."""
        try:
            stored = json.loads(text)
            check(stored, STORED, "encoding")
            return cls._stored(stored)
        except (ValueError, TypeError, RecursionError) as error:
            raise ValueError(f"The encoding of the columns cannot be read ({str(error)[:120]}).") from error

    @classmethod
    def _stored(cls, stored: dict) -> "Encoding":
        made = cls([ColumnEncoding(**values) for values in stored["columns"]], complete=stored.get("complete", False))
        rows = {name: stored[name] for name in ("scale", "why", "library") if name in stored}  # 0.2.0 had none
        made = replace(made, **rows)
        if not any(made.names):  # 0.1.0 did not name the columns of an array
            made.columns = [replace(column, name=f"x{place}") for place, column in enumerate(made.columns)]
        d = len(made.spread)
        if stored["factors"] is not None:
            made.factors = np.array(stored["factors"], dtype=np.float64)
        if stored["donors"] is not None:
            made.donors = np.array(stored["donors"], dtype=np.float64)
        repeated = any(len(set(column.levels or ())) < len(column.levels or ()) for column in made.columns)
        if not d or len(set(made.names)) < len(made.columns) or repeated:
            raise ValueError("it has no columns, or columns or levels with equal names")
        if not (made.spread > 0).all() or (made.factors is not None and not np.isfinite(made.factors).all()):
            raise ValueError("it has values that are not finite, or spreads that are not positive")
        if (made.factors is not None and made.factors.shape[:1] != (d,)) or (
            made.donors is not None and made.donors.shape[1:] != (d,)
        ):
            raise ValueError(f"its factors or donors do not have {d} values")
        if (made.factors is None) == bool(made.of_category.any()):
            raise ValueError("it has factors without categories, or categories without factors")
        return made


@dataclass(frozen=True)
class Encoded:
    """Rows after encoding: their values (N, D) in the units of the table, and their points (N, E)."""

    encoding: Encoding
    values: np.ndarray
    points: np.ndarray
    empty: tuple[str, ...] = ()  # columns without any value, all of which were filled

    def __len__(self) -> int:
        return len(self.points)

    def take(self, rows: np.ndarray) -> "Encoded":
        return Encoded(self.encoding, self.values[rows], self.points[rows])

    @property
    def numbers(self) -> np.ndarray:
        """(N, columns) the values of the columns, NaN for categories."""
        result = np.full((len(self), len(self.encoding.columns)), np.nan)
        is_number = [column.levels is None for column in self.encoding.columns]
        result[:, is_number] = self.values[:, ~self.encoding.of_category]
        return result


def _json_rows(array: np.ndarray) -> list[list[float | None]]:
    return [[None if np.isnan(value) else value for value in row] for row in array.tolist()]


def different_rows(rows_ND: np.ndarray) -> np.ndarray:
    """Places of the different rows if all of them occur equally often, as in a table that was copied; else all places.

    A copy of every row is no new information, but would pass for more evidence. Few different rows, each of which
    occurs many times, are not copies: they are clusters.
    """
    everywhere = np.arange(len(rows_ND))
    some = {int((rows_ND == rows_ND[place]).all(axis=1).sum()) for place in (0, len(rows_ND) // 2, -1)}
    if len(some) > 1 or some == {1}:
        return everywhere
    _, first, counts = np.unique(rows_ND, axis=0, return_index=True, return_counts=True)
    is_copied = counts.min() == counts.max() and len(counts) > COPIES_OF_ROWS * counts[0]
    return np.sort(first) if is_copied else everywhere


def _factors(values_ND: np.ndarray, encoding: Encoding) -> np.ndarray:
    """(D, F) a map from scaled values to the factors that categories share with other columns."""
    reach_D = encoding._reach * encoding.spread
    values_ND = encoding.logged(values_ND[different_rows(values_ND)])
    values_ND = values_ND.clip(encoding.middle - reach_D, encoding.middle + reach_D)
    n, d = values_ND.shape
    mean_D, category_D = values_ND.mean(axis=0), encoding.of_category
    unit_D = np.where(category_D, np.sqrt(np.maximum(mean_D, 1 / n)), values_ND.std(axis=0))
    unit_D = np.where(unit_D > 0, unit_D, 1.0)
    z_ND = (values_ND - mean_D) / unit_D
    axes_DD, variance_D = principal_axes(z_ND)
    shared_D = variance_D > (1 + np.sqrt(d / n)) ** 2  # the largest by chance (Marchenko and Pastur 1967)
    weight = FACTOR_WEIGHT
    if not shared_D.any() and category_D[z_ND.std(axis=0) > 0].all():
        shared_D, weight = variance_D > 1e-9, 1.0
    axes_FD = axes_DD[shared_D]
    onto_DD = axes_FD.T @ axes_FD * category_D  # from z to the part of the categories that is shared
    part_ND = z_ND @ onto_DD
    turn_DD, variance_D = principal_axes(part_ND)  # the same points in as few coordinates as possible
    turn_DF = turn_DD[variance_D > 1e-9].T
    return weight * (encoding.spread / unit_D)[:, None] * (onto_DD @ turn_DF)


def _require_empty(values: np.ndarray, what: str) -> np.ndarray:
    if not is_empty(values):
        raise ValueError(f"{what}: convert it to the type that it had during fit.")
    return np.full(len(values), np.nan)
