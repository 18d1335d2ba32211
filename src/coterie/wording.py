"""Numbers, enumerations and names of clusters in sentences."""

import math
from collections.abc import Mapping, Sequence


def number(value: float) -> str:
    """Four significant digits, or all digits before the decimal point."""
    value = float(value)
    if not math.isfinite(value):
        return "–"
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e12 else f"{value:,.4g}"


def time_of_day(hours: float) -> str:
    """Hours as people write a time of day."""
    minutes = round(60 * hours) % 1_440
    return f"{minutes // 60}:{minutes % 60:02d}"


def cluster_name(label: int, called: Mapping[int, str] | None = None) -> str:
    """What a cluster is called: its name if it has one, else its number."""
    return "outliers" if label < 0 else (called or {}).get(int(label), f"cluster {label}")


def number_and_name(label: int, called: Mapping[int, str] | None = None) -> str:
    """The number of a cluster, by which it is edited, and its name if it has one."""
    return "outliers" if label < 0 else f"{label} {(called or {}).get(int(label), '')}".rstrip()


def short(name: object, limit: int = 40) -> str:
    """A text on one line, cut to a number of letters."""
    name = " ".join(str(name).split())
    return name if len(name) <= limit else name[: limit - 1] + "…"


def plural(count: int, word: str) -> str:
    return f"{count:,} {word if count == 1 else word + 's'}"


def joined(parts: Sequence[str], word: str = "and", *, limit: int = 8) -> str:
    """An enumeration; of many parts only the first ones."""
    shown = list(parts[:limit])
    if len(parts) > limit:
        return f"{', '.join(shown)} {word} {len(parts) - limit} more"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} {word} {shown[-1]}"


def quoted(names: Sequence[str], word: str = "and", *, limit: int = 8) -> str:
    """An enumeration of names in quotes."""
    return joined([repr(name) for name in names], word, limit=limit)


def shown(text: str) -> str:
    """A text for a terminal: control characters are written as escapes, so that they are shown and not obeyed."""
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)
