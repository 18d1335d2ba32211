"""The colours, markers and names of clusters, in all pictures."""

from typing import Any

from coterie.palette import OUTLIER as OUTLIER
from coterie.palette import PALETTE as PALETTE
from coterie.palette import color as color

MARKERS = ("o", "^", "s", "D", "v", "P", "X")
SYMBOLS = ("circle", "triangle-up", "square", "diamond", "triangle-down", "cross", "x")  # the same ones in plotly
FEW = 12  # clusters, for which large labels fit


def marker(label: int) -> str:
    return MARKERS[int(label) // len(PALETTE) % len(MARKERS)]


def symbol(label: int) -> str:
    return "x-thin" if label < 0 else SYMBOLS[int(label) // len(PALETTE) % len(SYMBOLS)]


def see_through(hex_color: str, alpha: float) -> str:
    """A transparent colour, so that one picture suits light and dark pages."""
    red, green, blue = (int(hex_color[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{alpha:g})"


def short(name: Any, limit: int = 40) -> str:
    name = " ".join(str(name).split())
    return name if len(name) <= limit else name[: limit - 1] + "…"
