"""Numbers and dates as people write them: decimal commas, thousands separators, currencies, units, any order of a date.

A function here takes the different texts of one column and returns one number per text (NaN is missing), or None if one
of the texts is something else. What was understood, such as the decimal mark, is returned beside the numbers: it is
needed to read the same column of another table in the same way.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

import numpy as np

MISSING = frozenset(("", "?", "-", "--", "–", "—", ".", "na", "n/a", "#n/a", "#na", "nan", "null", "<na>", "nat"))
MISSING_NUMBERS = MISSING | {"none", "nil", "missing", "unknown", "n.a.", "n.d.", "#value!", "#div/0!", "#ref!"}
ORDERS = {"ymd": "year, month, day", "dmy": "day, month, year", "mdy": "month, day, year"}
_CURRENCY = r"(?:[$€£¥₹₽₩]|US\$|USD|EUR|GBP|CHF|JPY|SEK|NOK|DKK|CAD|AUD|INR|CNY|PLN|BRL|kr)"
_NUMBER = re.compile(
    rf"(?P<open>\()?\s*(?P<sign>[-+−])?\s*(?P<money>{_CURRENCY})?\s*(?P<sign2>[-+−])?\s*"
    r"(?P<digits>\d[\d.,'’\u00a0\u202f\u2009 ]*|[.,]\d+)(?P<power>[eE][-+]?\d{1,3})?"
    rf"\s*(?P<unit>%|‰|{_CURRENCY}|[°µ]?[A-Za-zµ°²³/]{{1,10}})?\s*(?P<close>\))?",
)
_CODE = re.compile(r"[A-Za-z]{1,3}-?(\d{4,})")
_MONTHS = {"janfebmaraprmayjunjulaugsepoctnovdec"[3 * i : 3 * i + 3]: i + 1 for i in range(12)}
_CLOCK = (
    r"(?:[T ,]\s*(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?P<part>[.,]\d{1,9})?)?"
    r"\s*(?P<half>[AaPp][Mm])?\s*(?P<zone>Z|UTC|GMT|[-+]\d{2}:?\d{2}|[-+]\d{2})?)?"
)
_DATES = tuple(
    re.compile(pattern + _CLOCK)
    for pattern in (
        r"(?P<year>\d{4})([-/.])(?P<b>\d{1,2})\2(?P<c>\d{1,2})",
        r"(?P<a>\d{1,2})([-/.])(?P<b>\d{1,2})\2(?P<year>\d{4}|\d{2})",
        r"(?P<day>\d{1,2})[-. ]\s?(?P<month>[A-Za-z]{3,9})\.?,?[-. ]\s?(?P<year>\d{4}|\d{2})",
        r"(?P<month>[A-Za-z]{3,9})\.? (?P<day>\d{1,2}),? (?P<year>\d{4})",
    )
)
_TIME = re.compile(
    r"(?:(?P<days>\d+) days?,? )?(?P<hour>\d{1,3}):(?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d(?:[.,]\d{1,9})?))?"
    r"\s*(?P<half>[AaPp][Mm])?"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


ONE_OTHER = 0.3  # share of the rows with one and the same text at which a column still holds numbers
FEWEST_NUMBERS = 20  # different ones beside which another text is an error; fewer may be codes


@dataclass(frozen=True)
class Numbers:
    """Numbers that were written as text: the decimal mark that was found, and the unit if all have the same one.

    ``strange`` are texts among them that are no numbers, and ``strange_rows`` is how many rows have these.
    """

    values: np.ndarray
    decimal: str
    unit: str
    strange: tuple[str, ...] = ()
    strange_rows: int = 0


@dataclass(frozen=True)
class Dates:
    """Dates in days since 1970. ``certain`` is whether only one order of day and month was possible."""

    values: np.ndarray
    order: str
    certain: bool


@dataclass(frozen=True)
class Times:
    """Times of day or, with ``of_day`` false, durations; both in hours."""

    values: np.ndarray
    of_day: bool


def times(texts: Sequence[str]) -> Times | None:
    """Read texts as times of day (7:30, 19:30:05, 7:30 pm), or as durations if some are longer or name days."""
    found = _matched(texts, _TIME.fullmatch)
    if not found:
        return None
    hours = np.array([np.nan if match is None else _hours(match) for match in found])
    return Times(hours, np.nanmax(hours) <= 24 and not any(match and match["days"] for match in found))


def _matched(texts: Sequence[str], match: Callable[[str], re.Match[str] | None]) -> list[re.Match[str] | None]:
    """The match of every text, None where a value is missing; nothing if a text has none, or if all are missing."""
    found: list[re.Match[str] | None] = []
    for text in texts:
        bare = text.strip()
        missing = bare.casefold() in MISSING_NUMBERS
        found.append(None if missing else match(bare))
        if found[-1] is None and not missing:
            return []
    return found if any(found) else []


def _hours(match: re.Match[str]) -> float:
    hour = 24 * int(match["days"] or 0) + int(match["hour"])
    if match["half"] is not None:
        hour = hour % 12 + (12 if match["half"].casefold() == "pm" else 0)
    return hour + int(match["minute"]) / 60 + float((match["second"] or "0").replace(",", ".")) / 3_600


def is_missing(text: str) -> bool:
    """Whether a text stands for a missing value in any column."""
    return text.strip().casefold() in MISSING


def numbers(texts: Sequence[str], decimal: str | None = None) -> Numbers | None:
    """Read texts as numbers. ``decimal`` is the decimal mark where the texts leave it open; a point by default."""
    found = _matched(texts, _number_in)
    units = {match["money"] or match["unit"] or "" for match in found if match is not None}
    if not units or len(units - {""}) > 1:
        return None
    unit = next(iter(units - {""}), "")
    if unit and len(units) > 1 and re.fullmatch(r"[A-Za-z]", unit):  # 1, 2, 2a: codes
        return None
    mark = decimal_mark([match["digits"].rstrip() for match in found if match is not None], decimal)
    if mark is None:
        return None
    values = [np.nan if match is None else _number(match, mark) for match in found]
    return None if None in values else Numbers(np.array(values, dtype=np.float64), mark, unit)


def mostly_numbers(
    texts: Sequence[str], counts: np.ndarray, share: float, decimal: str | None = None
) -> Numbers | None:
    """Numbers among which at most a ``share`` of the rows has another text, such as a typing error: NaN there.

    ``counts`` is how many rows have each of the texts.
    """
    begins = [_can_be_number(text) for text in texts[:1_000]]  # most columns of texts have none: look no further
    if sum(begins) < max(FEWEST_NUMBERS, len(begins) / 4):
        return None
    is_number = np.array([_can_be_number(text) for text in texts])
    found = numbers([text for text, is_one in zip(texts, is_number) if is_one], decimal)
    rows = int(counts[~is_number].sum())
    one_other = (~is_number).sum() == 1  # "ancient" among years: a value of its own, however frequent
    if found is None or rows > max(1, max(share, one_other * ONE_OTHER) * counts.sum()):
        return None
    values = np.full(len(texts), np.nan)
    values[is_number] = found.values
    strange = tuple(text for text, is_one in zip(texts, is_number) if not is_one)
    digits = {len(text.strip()) for text, is_one in zip(texts, is_number) if is_one and text.strip().isdigit()}
    if any((code := _CODE.fullmatch(text.strip())) and len(code[1]) in digits for text in strange):
        return None  # 536379 and C536379: numbers of invoices, some of them marked
    return Numbers(values, found.decimal, found.unit, strange, rows)


def _number_in(bare: str) -> re.Match[str] | None:
    match = _NUMBER.fullmatch(bare)
    return match if match is not None and bool(match["open"]) == bool(match["close"]) else None


def _can_be_number(text: str) -> bool:
    """Whether a text alone can be a number, or stands for a missing one."""
    return text.strip().casefold() in MISSING_NUMBERS or _number_in(text.strip()) is not None


def decimal_mark(digits: Sequence[str], default: str | None = None) -> str | None:
    """The decimal mark of numbers, or None if they contradict each other. ``default`` decides what they leave open."""
    marks = set()
    for text in digits:
        points, commas = text.count("."), text.count(",")
        if points and commas:
            marks.add("." if text.rindex(".") > text.rindex(",") else ",")
        elif points > 1:
            marks.add(",")
        elif commas > 1:
            marks.add(".")
        elif commas == 1 and (len(text) - text.index(",") != 4 or text.startswith(("0,", ",")) or text.index(",") > 3):
            marks.add(",")
        elif points == 1 and (len(text) - text.index(".") != 4 or text.startswith(("0.", ".")) or text.index(".") > 3):
            marks.add(".")
    if len(marks) > 1:
        return None
    return next(iter(marks), default or ".")


def _number(match: re.Match[str], mark: str) -> float | None:
    whole, _, fraction = match["digits"].rstrip().partition(mark)
    groups = re.split(r"[.,'’\u00a0\u202f\u2009 ]", whole)
    if any(len(group) != 3 for group in groups[1:]) or not re.fullmatch(r"\d*", fraction):
        return None
    value = float(f"{''.join(groups) or '0'}.{fraction or '0'}{match['power'] or ''}")
    negative = match["open"] or "-" in (match["sign"], match["sign2"]) or "−" in (match["sign"], match["sign2"])
    return -value if negative else value


def dates(texts: Sequence[str], order: str | None = None) -> Dates | None:
    """Read texts as dates, with or without a time of day. ``order`` decides where day and month could be exchanged.

    Without it, 1.2.2015 and 1-2-2015 begin with the day, and 1/2/2015 with the month.
    """
    found = _matched(texts, lambda bare: next((match for one in _DATES if (match := one.fullmatch(bare))), None))
    if not found:
        return None
    open_ones = [match for match in found if match is not None and "a" in match.groupdict()]
    slashes = any("/" in match.string for match in open_ones)
    certain = True
    if open_ones:
        day_first = any(int(match["a"]) > 12 for match in open_ones)
        month_first = any(int(match["b"]) > 12 for match in open_ones)
        if day_first and month_first:
            return None
        certain = day_first or month_first
        taken = "dmy" if day_first else "mdy" if month_first else order or ("mdy" if slashes else "dmy")
    else:
        taken = "ymd"
    days = [np.nan if match is None else _days(match, taken) for match in found]
    return None if None in days else Dates(np.array(days, dtype=np.float64), taken, certain)


def _days(match: re.Match[str], order: str) -> float | None:
    part = match.groupdict()
    year = int(part["year"])
    if len(part["year"]) == 2:
        year += 2000 if year < 70 else 1900
    if part.get("month") is not None:
        name = part["month"][:3].casefold()
        if name not in _MONTHS:
            return None
        month, day = _MONTHS[name], int(part["day"])
    elif part.get("a") is None:
        month, day = int(part["b"]), int(part["c"])
    else:
        first, second = int(part["a"]), int(part["b"])
        month, day = (second, first) if order == "dmy" else (first, second)
    hour = int(part["hour"] or 0)
    if part["half"] is not None:
        hour = hour % 12 + (12 if part["half"].casefold() == "pm" else 0)
    seconds = float((part["second"] or "0") + (part["part"] or "").replace(",", "."))
    try:
        at = datetime(year, month, day, hour, int(part["minute"] or 0), tzinfo=timezone.utc)
    except ValueError:
        return None
    offset, zone = timedelta(), part["zone"]
    if zone is not None and zone not in ("Z", "UTC", "GMT"):
        digits = zone[1:].replace(":", "").ljust(4, "0")
        offset = (-1 if zone[0] == "-" else 1) * timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return (at - _EPOCH - offset) / timedelta(days=1) + seconds / 86_400
