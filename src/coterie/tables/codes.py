"""Few whole numbers that are codes or steps of a scale: categories, by how other columns depend on them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from coterie.tables.columns import Column, category_texts
from coterie.tables.kinds import CATEGORY, COUNT, NUMBER, ORDINAL, STEPS

ROWS = 10_000  # from which it is seen whether numbers behave like codes
COLUMNS = 200  # with which they are compared
ITEMS = 3  # columns with the same steps are items of a questionnaire, which are numbers
GAIN = 0.15  # share of variance; see :class:`_Ranks`


def with_codes(read: list[Column], free: set[str]) -> list[Column]:
    """Few whole numbers that behave like codes become a category; single short scales are compared like categories."""
    others = _Ranks([column.values for column in read if column.kind in (NUMBER, COUNT) and column.used])
    steps = Counter(_ends(column) for column in read)
    made = []
    for column in read:
        if column.kind == ORDINAL and column.values.dtype != object:
            if column.name in free and others.most_unlike(column.values) > GAIN:
                why = f"{column.why}, whose order says nothing about other columns"
                column = replace(column, kind=CATEGORY, values=category_texts(column.values), why=why)
            elif len(np.unique(column.values[np.isfinite(column.values)])) <= STEPS and steps[_ends(column)] < ITEMS:
                column = replace(column, values=category_texts(column.values))
        made.append(column)
    return made


class _Ranks:
    """The ranks of columns of numbers, NaN where a value is missing, to see whether others behave like codes."""

    def __init__(self, columns: Sequence[np.ndarray]):
        some = columns[:: -(-len(columns) // COLUMNS) or 1]
        self.every = -(-len(some[0]) // ROWS) if some else 1
        chosen = [values[:: self.every] for values in some]
        ranks = [np.where(np.isfinite(one), one.argsort().argsort(), np.nan) for one in chosen]
        self.ranks_NM = np.column_stack(ranks) if ranks else np.zeros((0, 0))

    def most_unlike(self, values: np.ndarray) -> float:
        """How much more levels explain of a column than any rising or falling function of the values.

        The share of variance, at most over the columns. It is about 0 for a scale, whose effect has a direction. All
        that levels explain bounds it from above, so that few columns need a closer look.
        """
        from sklearn.isotonic import isotonic_regression

        if not self.ranks_NM.size:
            return 0.0
        values = values[:: self.every]
        rows = np.isfinite(values)
        levels, places = np.unique(values[rows], return_inverse=True)
        own_NL, ranks_NM = np.eye(len(levels))[places], self.ranks_NM[rows]
        known_NM = np.isfinite(ranks_NM)
        ranks_NM = np.where(known_NM, ranks_NM, 0.0)
        n_M = np.maximum(known_NM.sum(axis=0), 1)
        mean_M = ranks_NM.sum(axis=0) / n_M
        total_M = (ranks_NM**2).sum(axis=0) / n_M - mean_M**2
        counts_LM = own_NL.T @ known_NM
        means_LM = np.where(counts_LM > 0, own_NL.T @ ranks_NM / np.maximum(counts_LM, 1), mean_M)
        explained_M = (counts_LM * (means_LM - mean_M) ** 2).sum(axis=0) / n_M
        most = 0.0
        for m in np.argsort(-explained_M / np.maximum(total_M, 1e-12)):
            there = counts_LM[:, m] > 0
            means, counts = means_LM[there, m], counts_LM[there, m]
            chance = (len(means) - 1) / n_M[m]  # of variance that levels explain by chance
            if total_M[m] <= 0 or len(means) < 3 or explained_M[m] / total_M[m] - chance <= max(most, GAIN):
                continue
            fits = [isotonic_regression(means, sample_weight=counts, increasing=up) for up in (True, False)]
            lost = min(np.average((fit - means) ** 2, weights=counts) for fit in fits)
            most = max(most, float(lost / total_M[m] - chance))
        return most


def _ends(column: Column) -> tuple[float, float] | None:
    """The lowest and the highest step of a scale of numbers."""
    if column.kind != ORDINAL or column.values.dtype == object:
        return None
    return float(np.nanmin(column.values)), float(np.nanmax(column.values))
