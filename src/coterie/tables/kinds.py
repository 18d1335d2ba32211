"""What kind of values a column holds, guessed from the values and the name of the column.

A guess does not depend on the order of the rows. It has a reason in words, which ``coterie columns`` prints.
"""

import re
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property
from typing import Any

import numpy as np

ID, DATE, CATEGORY, ORDINAL, COUNT, NUMBER, TEXT = "id", "date", "category", "ordinal", "count", "number", "text"
KINDS = (ID, DATE, CATEGORY, ORDINAL, COUNT, NUMBER, TEXT)
EMPTY = "empty"  # of a column without values; it cannot be asked for
USABLE = (NUMBER, COUNT, ORDINAL, DATE, CATEGORY)  # kinds that can be clustered
LEVELS = 32  # of a category; rarer values share one level
FEW = 12  # different integers that may be codes or steps of a scale
BLANK = 0.05  # share of the rows from which blanks beside one value are an answer
STEPS = 5  # of a scale that is compared like a category, by measurement (results/LOG.md); longer ones are numbers


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_IDS = _words("id ids uid uuid guid pk rowid objectid")
_NUMBERS_OF_ROWS = _words(
    "no nr num number key index idx row rownum serial sku code rowname rownames icpsr case caseid obs observation "
    "record respondent subject"
)
_LABELS = _words("zip zipcode postcode postal plz phone telephone mobile fax ssn isbn")
_CODES = re.compile(  # words in the names of columns whose numbers are labels
    "code|type|kind|category|class|group|region|zone|area|district|sector|department|dept|branch|sex|gender|race|"
    "ethnicity|religion|status|state|country|city|species|breed|colou?r|brand|make|model|channel|method|mode|cluster|"
    "cohort|segment|treatment|site|station|plan|team|family|origin|marital|occupation|job|weekday"
)
_UNNAMED = re.compile(r"\(?unnamed\)?(: ?\d+)?|index|level_0|", re.IGNORECASE)
_UUID = re.compile(r"[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}|[0-9a-f]{24,64}", re.IGNORECASE)
_SCALES = tuple(
    scale.split("|")
    for scale in (
        "very low|low|medium|high|very high",
        "low|mid|high",
        "low|moderate|high",
        "low|middle|high",
        "low|normal|high",
        "xs|s|m|l|xl|xxl",
        "very small|small|medium|large|very large",
        "never|rarely|sometimes|often|always",
        "very bad|bad|fair|good|very good|excellent",
        "very poor|poor|fair|good|very good|excellent",
        "fair|good|very good|premium|ideal",
        "strongly disagree|disagree|neutral|agree|strongly agree",
        "very dissatisfied|dissatisfied|neutral|satisfied|very satisfied",
        "none|mild|moderate|severe",
        "1st|2nd|3rd|4th|5th",
        "first|second|third|fourth|fifth",
    )
)


@dataclass(frozen=True)
class Guess:
    """The kind of a column, why, and whether a column of this kind helps to find clusters."""

    kind: str
    why: str
    used: bool = True


@dataclass(frozen=True)
class Sight:
    """What a guess sees of a column: its different values, how often they occur, and its name.

    ``values`` are floats or texts without missing ones. ``rows`` is the number of different rows of the table, so that
    rows that occur twice do not hide an identifier. ``first`` is whether this is the first column, and ``blank`` the
    share of the rows without a value.
    """

    name: str
    values: np.ndarray
    counts: np.ndarray
    rows: int
    first: bool = False
    dates: bool = False
    blank: float = 0.0

    @cached_property
    def words(self) -> frozenset[str]:
        """The words of the name, also of one like customerId or AccountNo."""
        parted = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", self.name)
        return frozenset(re.findall(r"[^\W\d_]+", parted.casefold()))

    @property
    def distinct(self) -> int:
        return len(self.values)

    @cached_property
    def integers(self) -> bool:
        return self.values.dtype != object and bool((self.values == np.round(self.values)).all())

    @property
    def is_box(self) -> bool:
        """Whether the one value is an answer to "select all that apply", so that a blank is the other answer."""
        one = not self.dates and (self.values.dtype == object or self.values[0] == 1)
        return one and self.blank >= BLANK and self.counts[0] > 1

    @property
    def unique(self) -> bool:
        """Whether nearly every row has a value of its own."""
        return self.distinct >= 5 and self.distinct >= 0.95 * self.rows


def guess(sight: Sight) -> Guess:
    """The kind of a column."""
    if not sight.distinct:
        return Guess(EMPTY, "it has no values", used=False)
    if sight.distinct == 1:
        if sight.is_box:
            return Guess(CATEGORY, f"{shown(sight.values[0])} or blank, as of boxes that are ticked: blank is no")
        kind = CATEGORY if sight.values.dtype == object else DATE if sight.dates else NUMBER
        return Guess(kind, f"every value is {shown(sight.values[0], sight.dates)}", used=False)
    if sight.dates:
        return _dates(sight)
    return _texts(sight) if sight.values.dtype == object else _numbers(sight)


def _dates(sight: Sight) -> Guess:
    gaps = np.diff(sight.values)
    if sight.unique and sight.distinct >= 20 and gaps.max() <= 1.5 * gaps.mean():
        return Guess(ID, "evenly spaced times that number the rows", used=False)
    return Guess(DATE, "dates")


def _texts(sight: Sight) -> Guess:
    distinct = f"{sight.distinct:,} different values"
    if sight.unique or sight.distinct > max(LEVELS, sight.rows / 2):
        if sight.words & _IDS or all(_UUID.fullmatch(text) for text in sight.values[:100]):
            return Guess(ID, f"identifiers: {distinct}", used=False)
        return Guess(TEXT, f"nearly every value is different ({distinct})", used=False)
    if sight.words & (_IDS | _LABELS) and sight.distinct > LEVELS:
        return Guess(ID, f"its name suggests identifiers ({distinct})", used=False)
    if steps := scale_of(sight.values.tolist()):
        return Guess(ORDINAL, f"steps of a scale: {' < '.join(steps)}")
    if sight.distinct == 2:
        return Guess(CATEGORY, f"two values: {_both(sight)}")
    return Guess(CATEGORY, distinct)


def _numbers(sight: Sight) -> Guess:
    if sight.distinct == 2 and sight.counts.sum() >= 5:
        return Guess(CATEGORY, f"two values: {_both(sight)}")
    low, high = float(sight.values.min()), float(sight.values.max())
    if not sight.integers:
        if sight.distinct <= STEPS and sight.counts.sum() >= 5 * sight.distinct:
            return Guess(ORDINAL, f"{sight.distinct} different numbers from {low:.15g} to {high:.15g}")
        return Guess(NUMBER, "numbers")
    if sight.unique and sight.first and _UNNAMED.fullmatch(sight.name.strip()):
        return Guess(ID, "a first column without a name that numbers the rows", used=False)
    if sight.unique and (sight.words & (_IDS | _NUMBERS_OF_ROWS)):
        return Guess(ID, "its name suggests identifiers, and nearly every value is different", used=False)
    if sight.unique and (
        high - low + 1 == sight.distinct or (sight.distinct >= 20 and high - low < 1.5 * sight.distinct)
    ):
        return Guess(ID, f"whole numbers that count the rows, from {low:.15g} to {high:.15g}", used=False)
    if sight.distinct > LEVELS and high - low + 1 == sight.distinct and low in (0, 1) and _falling(sight.counts):
        return Guess(ID, f"it numbers the rows of several groups, from {low:.15g} to {high:.15g}", used=False)
    if sight.words & (_IDS | _LABELS):
        if sight.distinct > LEVELS:
            return Guess(ID, f"its name suggests identifiers ({sight.distinct:,} different values)", used=False)
        return Guess(CATEGORY, f"its name suggests codes ({sight.distinct} different values)")
    if sight.distinct <= FEW and sight.rows >= 3 * sight.distinct:
        if any(_CODES.fullmatch(word) for word in sight.words):
            return Guess(CATEGORY, f"its name suggests codes ({sight.distinct} different values)")
        return Guess(ORDINAL, f"{sight.distinct} whole numbers from {low:.15g} to {high:.15g}")
    if low == 0 and sight.counts[sight.values < high / 2].sum() > 0.6 * sight.counts.sum():
        return Guess(COUNT, f"whole numbers from 0 to {high:.15g}, most of them small")
    return Guess(NUMBER, "whole numbers")


def _falling(counts: np.ndarray) -> bool:
    """Whether no value occurs more often than a smaller one, as in 1, 2, 3, 1, 2: counting, not measuring."""
    return bool((np.diff(counts) <= 0).all())


def scale_of(texts: list[str]) -> list[str] | None:
    """The texts in the order of a known scale, such as low, medium and high, from the lowest step."""
    folded = {text.strip().casefold().replace("-", " ").replace("_", " "): text for text in texts}
    if len(folded) < 3 or len(folded) < len(texts):
        return None
    for scale in _SCALES:
        if folded.keys() <= set(scale):
            return [folded[step] for step in scale if step in folded]
    return None


def shown(value: Any, is_date: bool = False) -> str:
    """A value in a sentence."""
    if isinstance(value, str):
        return repr(value if len(value) <= 30 else value[:29] + "…")
    if is_date:
        return str(date(1970, 1, 1) + timedelta(days=float(value)))
    return f"{float(value):.15g}"


def _both(sight: Sight) -> str:
    return " and ".join(str(value) if isinstance(value, str) else f"{value:.15g}" for value in sorted(sight.values))
