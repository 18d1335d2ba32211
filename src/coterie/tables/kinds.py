"""What kind of values a column holds, guessed from the values and the name of the column.

A guess does not depend on the order of the rows. It has a reason in words, which ``coterie columns`` prints.
"""

import re
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import cached_property
from typing import Any

import numpy as np

ID, DATE, CATEGORY, ORDINAL, COUNT, NUMBER, TEXT = "id", "date", "category", "ordinal", "count", "number", "text"
CYCLE, LATITUDE, LONGITUDE = "cycle", "latitude", "longitude"  # compared on a circle, and as one place on the globe
ROUND = (CYCLE, LATITUDE, LONGITUDE)
KINDS = (ID, DATE, CATEGORY, ORDINAL, COUNT, NUMBER, *ROUND, TEXT)
EMPTY = "empty"  # of a column without values; it cannot be asked for
USABLE = (NUMBER, COUNT, ORDINAL, DATE, CATEGORY, *ROUND)  # kinds that can be clustered
LEVELS = 32  # of a category; rarer values share one level
FEW = 12  # different integers that may be codes or steps of a scale
BLANK = 0.05  # share of the rows from which blanks beside one value are an answer
MOSTLY = 0.5  # share of the rows without a value from which a column would be filled more than read
ALIKE = 1_000  # the largest label over the smallest: phone numbers have as many digits, numbers of phones have not
WORDS, SEEN = 5, 1_000  # words per value from which texts are sentences, and values in which they are counted
STEPS = 5  # of a scale that is compared like a category, by measurement (results/LOG.md); longer ones are numbers


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_IDS = _words("id ids uid uuid guid pk rowid objectid")
_NUMBERS_OF_ROWS = _words(
    "no nr num number key index idx row rownum serial sku code rowname rownames icpsr case caseid obs observation "
    "record respondent subject"
)
_BIRTHS = _words("birth birthday birthdate birthdays born dob bday geburtsdatum")
_LABELS = _words("zip zipcode postcode postal plz phone telephone mobile fax ssn isbn")
_CODES = re.compile(  # words in the names of columns whose numbers are labels
    "code|type|kind|category|class|group|region|zone|area|district|sector|department|dept|branch|sex|gender|race|"
    "ethnicity|religion|status|state|country|city|species|breed|colou?r|brand|make|model|channel|method|mode|cluster|"
    "cohort|segment|treatment|site|station|plan|team|family|origin|marital|occupation|job|weekday|dow|month"
)
_CYCLES = (  # words in the names of columns that run in a circle, its length, and the unit
    (_words("hour hr"), 24.0, "h"),
    (_words("doy yday dayofyear"), 366.0, ""),
    (_words("angle direction dir bearing heading azimuth aspect orientation winddirection winddir"), 360.0, "°"),
)
_PLACES = {LATITUDE: (_words("latitude lat"), 90), LONGITUDE: (_words("longitude lon lng long"), 360)}
_UNNAMED = re.compile(r"\(?unnamed\)?(: ?\d+)?|index|level_0|", re.IGNORECASE)
_UUID = re.compile(r"[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}|[0-9a-f]{24,64}", re.IGNORECASE)
_SCALES = tuple(
    scale.split("|")
    for scale in (
        "very low|low|mid|medium|middle|moderate|normal|high|very high",
        "xs|s|m|l|xl|xxl",
        "very small|small|medium|large|very large",
        "never|rarely|sometimes|often|always",
        "very bad|bad|very poor|poor|fair|good|very good|premium|excellent|ideal",
        "strongly disagree|disagree|neutral|agree|strongly agree",
        "very dissatisfied|dissatisfied|neutral|satisfied|very satisfied",
        "none|mild|moderate|severe",
        "1st|2nd|3rd|4th|5th",
        "first|second|third|fourth|fifth",
    )
)


@dataclass(frozen=True)
class Guess:
    """The kind of a column, why, whether such a column helps to find clusters, and the length of a cycle."""

    kind: str
    why: str
    used: bool = True
    cycle: float = 0.0
    unit: str = ""


@dataclass(frozen=True)
class Sight:
    """What a guess sees of a column: its different values, how often they occur, and its name.

    ``values`` are floats or texts without missing ones. ``rows`` is the number of different rows of the table, so that
    rows that occur twice do not hide an identifier. ``first`` is whether this is the first column, and ``blank`` the
    share of the rows without a value. ``clock`` says that the values are hours, written as times of day.
    """

    name: str
    values: np.ndarray
    counts: np.ndarray
    rows: int
    first: bool = False
    dates: bool = False
    blank: float = 0.0
    clock: bool = False

    @cached_property
    def words(self) -> frozenset[str]:
        return words_of(self.name)

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


def words_of(name: str) -> frozenset[str]:
    """The words of the name of a column, also of one like customerId or AccountNo."""
    parted = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return frozenset(re.findall(r"[^\W\d_]+", parted.casefold()))


def may_be_round(name: str) -> bool:
    """Whether the numbers of a column of this name may run in a circle, or be one half of a place on the globe."""
    named = [words for words, *_ in _CYCLES] + [words for words, _ in _PLACES.values()]
    return not words_of(name).isdisjoint(frozenset().union(*named))


def guess(sight: Sight) -> Guess:
    """The kind of a column."""
    if not sight.distinct:
        return Guess(EMPTY, "it has no values", used=False)
    if sight.distinct == 1:
        if sight.is_box:
            return Guess(CATEGORY, f"{shown(sight.values[0])} or blank, as of boxes that are ticked: blank is no")
        kind = CATEGORY if sight.values.dtype == object else DATE if sight.dates else NUMBER
        return Guess(kind, f"every value is {shown(sight.values[0], sight.dates)}", used=False)
    made = _dates(sight) if sight.dates else _texts(sight) if sight.values.dtype == object else _numbers(sight)
    if made.used and sight.blank > MOSTLY:
        return replace(made, why="most of the rows have no value", used=False)
    return made


def _dates(sight: Sight) -> Guess:
    if sight.words & _BIRTHS:
        return Guess(DATE, "dates")
    return Guess(DATE, "dates say when a row was made, not what it is", used=False)


def _texts(sight: Sight) -> Guess:
    distinct = f"{sight.distinct:,} different values"
    if sight.unique or sight.distinct > max(LEVELS, sight.rows / 2):
        if sight.words & _IDS or all(_UUID.fullmatch(text) for text in sight.values[:100]):
            return Guess(ID, f"identifiers: {distinct}", used=False)
        words = sum(len(text.split()) for text in sight.values[:SEEN]) / len(sight.values[:SEEN])
        what = "free text; embeddings of it can be clustered" if words >= WORDS else "nearly every value is different"
        return Guess(TEXT, f"{what} ({distinct})", used=False)
    if sight.words & (_IDS | _LABELS) and sight.distinct > LEVELS:
        return Guess(ID, f"the name suggests identifiers ({distinct})", used=False)
    if steps := scale_of(sight.values.tolist()):
        return Guess(ORDINAL, f"steps of a scale: {' < '.join(steps)}")
    if sight.distinct == 2:
        return Guess(CATEGORY, f"two values: {_both(sight)}")
    return Guess(CATEGORY, distinct)


def _numbers(sight: Sight) -> Guess:
    if sight.distinct == 2 and sight.counts.sum() >= 5:
        return Guess(CATEGORY, f"two values: {_both(sight)}")
    low, high = float(sight.values.min()), float(sight.values.max())
    if round_kind := _round(sight, low, high):
        return round_kind
    if not sight.integers:
        if sight.distinct <= STEPS and sight.counts.sum() >= 5 * sight.distinct:
            return Guess(ORDINAL, f"{sight.distinct} different numbers from {low:.15g} to {high:.15g}")
        return Guess(NUMBER, "numbers")
    if sight.unique and sight.first and _UNNAMED.fullmatch(sight.name.strip()):
        return Guess(ID, "a first column without a name that numbers the rows", used=False)
    if sight.unique and (sight.words & (_IDS | _NUMBERS_OF_ROWS)):
        return Guess(ID, "the name suggests identifiers, and nearly every value is different", used=False)
    if sight.unique and (
        high - low + 1 == sight.distinct or (sight.distinct >= 20 and high - low < 1.5 * sight.distinct)
    ):
        return Guess(ID, f"whole numbers that count the rows, from {low:.15g} to {high:.15g}", used=False)
    counted = (np.diff(sight.counts) <= 0).all()  # as in 1, 2, 3, 1, 2: counting, not measuring
    if sight.distinct > LEVELS and high - low + 1 == sight.distinct and low in (0, 1) and counted:
        return Guess(ID, f"it numbers the rows of several groups, from {low:.15g} to {high:.15g}", used=False)
    if sight.words & _IDS or (sight.words & _LABELS and high <= ALIKE * low):
        if sight.distinct > LEVELS:
            return Guess(ID, f"the name suggests identifiers ({sight.distinct:,} different values)", used=False)
        return Guess(CATEGORY, f"the name suggests codes ({sight.distinct} different values)")
    if sight.distinct <= FEW and sight.rows >= 3 * sight.distinct:
        if any(_CODES.fullmatch(word) for word in sight.words):
            return Guess(CATEGORY, f"the name suggests codes ({sight.distinct} different values)")
        return Guess(ORDINAL, f"{sight.distinct} whole numbers from {low:.15g} to {high:.15g}")
    if low == 0 and sight.counts[sight.values < high / 2].sum() > 0.6 * sight.counts.sum():
        return Guess(COUNT, f"whole numbers from 0 to {high:.15g}, most of them small")
    return Guess(NUMBER, "whole numbers")


def _round(sight: Sight, low: float, high: float) -> Guess | None:
    """Whether numbers run in a circle or are one half of a place on the globe, by their name and range."""
    if sight.clock:
        return Guess(CYCLE, "times of day: midnight is near to both sides", cycle=24.0, unit="h")
    for kind, (words, most) in _PLACES.items():
        if sight.words & words and -most <= low and high <= most:
            return Guess(kind, "degrees")
    for words, cycle, unit in _CYCLES:
        around = high - low > cycle / 2 and high - low <= cycle and -cycle / 2 <= low and high <= cycle
        if sight.words & words and sight.distinct > FEW and around:
            return Guess(CYCLE, f"numbers on a circle of {cycle:g}", cycle=cycle, unit=unit)
    return None


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
