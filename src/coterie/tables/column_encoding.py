"""How one column is encoded: a number by its centre and scale, a category by its levels."""

from collections import Counter
from dataclasses import dataclass, field, replace

import numpy as np

from coterie.tables.kinds import FEW, LEVELS, NUMBER

SKEW = 1.5  # ratio of the upper and the lower half of a column from which logarithms are considered
SKEW_ROWS = 50_000  # from which that is seen


@dataclass
class ColumnEncoding:
    """How one column is encoded: a number by its center and scale, a category by its levels.

    ``rest`` says that a last level stands for rare values, or for blanks where there is one level. If ``log`` is not
    None, a number x is compared as log(x + log), and ``middle`` and ``spread`` are those of the logarithms. ``kind``,
    ``sources``, ``spelling`` and ``absent`` say how the values are read from a table; see
    :class:`coterie.tables.columns.Column`. Numbers on a circle of length ``cycle`` are within half of it of ``middle``.
    """

    middle: float = 0.0
    spread: float = 1.0
    levels: list[str] | None = None
    rest: bool = True
    name: str = ""
    log: float | None = None
    kind: str = NUMBER
    sources: list[str] = field(default_factory=list)
    spelling: str = ""
    unit: str = ""
    absent: list[float] = field(default_factory=list)
    cycle: float = 0.0

    @classmethod
    def of(cls, values: np.ndarray, *, logs: bool = True, cycle: float = 0.0) -> "ColumnEncoding":
        """Learn the encoding of texts (None is missing) or floats; ``logs``: whether logarithms may be compared.

        Numbers on a circle of length ``cycle`` are cut where fewest of them are, so that means make sense.
        """
        if cycle and values.dtype != object:
            return _on_circle(values[np.isfinite(values)], cycle)
        return _category(values) if values.dtype == object else _number(values, logs=logs)

    @property
    def median(self) -> float:
        """The median in the units of the table, which stands for missing values."""
        return self.middle if self.log is None else float(np.exp(self.middle) - self.log)

    def around(self, values: np.ndarray) -> np.ndarray:
        """Numbers on a circle within half of it of the middle; other numbers as they are."""
        return (
            values
            if not self.cycle
            else self.middle + (values - self.middle + self.cycle / 2) % self.cycle - self.cycle / 2
        )

    @property
    def is_box(self) -> bool:
        """Whether it was ticked or left blank: a missing value is an answer."""
        return self.levels is not None and len(self.levels) == 1

    @property
    def named_levels(self) -> list[str]:
        """The levels of a category and, last, what the rest is called."""
        levels = self.levels or []
        rest = "blank" if self.is_box else "rare"
        return levels + [f"({rest})" if rest in levels else rest] * self.rest

    @property
    def width(self) -> int:
        """Number of value columns that this column becomes."""
        return 1 if self.levels is None else len(self.levels) + self.rest


def _number(values: np.ndarray, *, logs: bool = False) -> ColumnEncoding:
    known = values[np.isfinite(values)]
    if not len(known):
        return ColumnEncoding()
    if logs and (shift := log_shift(known)) is not None:
        return replace(_number(np.log(known + shift)), log=shift)
    unit = float(np.abs(known).max()) or 1.0  # squares of very large or small numbers would overflow
    low, middle, high = np.percentile(known / unit, (25, 50, 75))
    reach = 3 * (high - low) if high > low else np.inf  # extreme values do not count for the spread
    spread = unit * float(np.clip(known / unit, low - reach, high + reach).std())
    return ColumnEncoding(unit * float(middle), spread if spread > 0 else 1.0)


def _on_circle(known: np.ndarray, cycle: float) -> ColumnEncoding:
    """The middle, which is the mean unless the quarter opposite to another angle holds fewer, and the spread."""
    if not len(known):
        return ColumnEncoding(cycle=cycle)
    turns = known / cycle
    mean = np.exp(2j * np.pi * turns).mean()
    angles = np.append(np.angle(mean) / (2 * np.pi), np.linspace(0, 1, 96, endpoint=False))
    opposite = [np.count_nonzero((turns - angle - 0.375) % 1 < 0.25) for angle in angles]
    spread = float(np.sqrt(max(0.0, 1 - abs(mean) ** 2))) * cycle / (2 * np.pi)
    middle = float(angles[int(np.argmin(opposite))] % 1 * cycle)
    return ColumnEncoding(middle, spread if spread > 1e-9 * cycle else 1.0, cycle=cycle)


def log_shift(known: np.ndarray) -> float | None:
    """What to add to the numbers of a column before their logarithm; None if they are better compared as they are.

    Logarithms are taken of numbers that are not negative and whose upper half reaches farther than their lower half, if
    logarithms at least halve that asymmetry. The rule was chosen on real and drawn tables (results/LOG.md).
    """
    some = known[:: -(-len(known) // SKEW_ROWS)]
    if known.min() < 0 or len(np.unique(some)) <= FEW:
        return None
    before = _asymmetry(some)
    if before < np.log(SKEW):
        return None
    positive = some[some > 0]
    far_from_zero = known.min() > np.median(positive) / 1_000
    shift = 0.0 if far_from_zero else float(np.quantile(positive, 0.25))
    return shift if abs(_asymmetry(np.log(some + shift))) < before / 2 else None


def _asymmetry(values: np.ndarray) -> float:
    """Log of the ratio of the upper and the lower half of the range that holds nine tenths of the values."""
    low, middle, high = np.quantile(values, (0.05, 0.5, 0.95))
    unit = max(abs(low), abs(high)) or 1.0
    return float(np.log(max((high - middle) / unit, 1e-12) / max((middle - low) / unit, 1e-12)))


def _category(values: np.ndarray) -> ColumnEncoding:
    found = Counter(value for value in values if value is not None)
    common = sorted(found.items(), key=lambda one: (-one[1], one[0]))[:LEVELS]
    levels, counts = [name for name, _ in common], [count for _, count in common]
    rows = len(values) if len(common) == 1 else found.total()
    others = rows - sum(counts)
    shares = np.array([*counts, others]) / max(1, rows)
    apart = 1 - float((shares**2).sum())  # chance that two rows differ
    return ColumnEncoding(0.0, float(np.sqrt(apart)) if apart > 0 else 1.0, levels, rest=others > 0)
