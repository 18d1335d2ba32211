"""Cells that hold several choices, as "sport; music": one column of yes and no per choice."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from coterie.tables.columns import Column, as_texts
from coterie.tables.kinds import CATEGORY

SEPARATORS = ";|,"
MOST = 32  # choices
LONGEST = 80  # letters of a choice
YES, NO = "yes", "no"


def separator(texts: Sequence[str]) -> str:
    """What separates choices in the different texts of a column; "" if they are no choices.

    Choices recur in several texts, never twice in one, and some texts have more of them than others: an address or a
    name and first name have not.
    """
    for mark in SEPARATORS:
        if sum(mark in text for text in texts) < max(2, len(texts) / 5):
            continue
        cells = [_choices(text, mark) for text in texts]
        counts = Counter(choice for cell in cells for choice in cell)
        sizes = {len(cell) for cell in cells}
        recur = sum(counts.values()) >= 2 * len(counts)
        once = all(len(set(cell)) == len(cell) for cell in cells)
        if 2 <= len(counts) <= MOST and recur and once and len(sizes) > 1 and max(map(len, counts)) <= LONGEST:
            return mark
    return ""


def split(column: Column, mark: str) -> list[Column]:
    """One column per choice, the commonest first."""
    texts = [text for text in column.values if text is not None]
    counts = Counter(choice for text in texts for choice in _choices(text, mark))
    name, why = column.name, f"one of {len(counts)} choices that stand in one cell"
    return [
        replace(
            column, name=f"{name}: {choice}", kind=CATEGORY, values=chosen(column.values, mark + choice),
            why=why, spelling=mark + choice,
        )
        for choice, _ in sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    ]  # fmt: skip


def is_choice(column: Column) -> bool:
    """Whether a column stands for one of several choices in a cell."""
    return column.kind == CATEGORY and len(column.spelling) > 1


def chosen(values: np.ndarray, spelled: str) -> np.ndarray:
    """Yes or no for every row: whether a choice, which ``spelled`` names after its separator, is in its cell."""
    mark, choice = spelled[0], spelled[1:]
    known = {text: YES if choice in _choices(text, mark) else NO for text in set(values) if text is not None}
    return as_texts(None if text is None else known[text] for text in values)


def _choices(text: str, mark: str) -> list[str]:
    return [part.strip() for part in text.split(mark) if part.strip()]
