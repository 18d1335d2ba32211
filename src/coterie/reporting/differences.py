"""What makes each cluster different: the columns that set it apart, its typical rows, and columns that took no part."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from coterie.reporting.subject import Subject, sample

RANKED_CELLS = 4_000_000
SHOWN = 5


@dataclass(frozen=True)
class Trait:
    """One column of one cluster: means here and in all other rows, the distance between them in standard deviations
    of the column, how often a row from here is above a row from elsewhere, and whether it holds only 0 and 1."""

    column: str
    here: float
    elsewhere: float
    away: float
    above: float
    yes_or_no: bool = False

    @property
    def strength(self) -> float:
        """0 where the column says nothing, 1 where it separates the cluster from all other rows."""
        return abs(2 * self.above - 1)

    @property
    def words(self) -> str:
        if self.yes_or_no:
            return self._how_often
        very = "very " if abs(self.away) >= 1.5 else "" if abs(self.away) >= 0.6 else "rather "
        return f"{very}{'high' if self.away > 0 else 'low'}"

    @property
    def _how_often(self) -> str:
        for least, words in ((0.9, "nearly always"), (0.5, "mostly"), (0.1, "often" if self.away > 0 else "seldom")):
            if self.here >= least:
                return words
        return "hardly ever"


@dataclass(frozen=True)
class Portrait:
    """One cluster: its traits from the strongest on, its most typical rows, and values of columns that took no part."""

    label: int
    size: int
    share: float
    traits: list[Trait]
    typical: list[int]
    mentions: list[tuple[str, str, float, float]]  # column, value, share here, share of all rows

    def in_words(self, count: int = 3) -> str:
        told = [f"{trait.words} {trait.column}" for trait in self.traits[:count] if trait.strength > 0.3]
        few = len(self.traits) == 1
        return ", ".join(told) or (f"average {self.traits[0].column}" if few else "near the average in every column")


def portraits(subject: Subject) -> list[Portrait]:
    """Every cluster that has rows, in the order of the labels."""
    traits = _traits(subject)
    typical = _typical(subject)
    mentions = _mentions(subject)
    return [
        Portrait(j, int(size), float(size / subject.n), traits[j], typical[j], mentions.get(j, []))
        for j, size in enumerate(subject.sizes)
        if size > 0
    ]


def _traits(subject: Subject) -> dict[int, list[Trait]]:
    values, labels = subject.values, subject.labels
    rows = sample(labels, max(2_000, RANKED_CELLS // max(1, values.shape[1])))
    drawn = labels[rows]
    ranks = rankdata(values[rows], axis=0)
    spread = values.std(axis=0, dtype=np.float64)
    spread = np.where(spread > 0, spread, 1.0)
    total = values.sum(axis=0, dtype=np.float64)
    flags = ((values == 0) | (values == 1)).all(axis=0)
    result = {}
    for j, size in enumerate(subject.sizes):
        if size == 0:
            continue
        own = values[labels == j].sum(axis=0, dtype=np.float64)
        here = own / size
        others = len(labels) - size
        elsewhere = (total - own) / others if others else here
        inside = drawn == j
        m, rest = int(inside.sum()), int((~inside).sum())
        rank_sum = ranks[inside].sum(axis=0)
        above = (rank_sum - m * (m + 1) / 2) / (m * rest) if m and rest else np.full(values.shape[1], 0.5)
        away = (here - elsewhere) / spread
        found = [
            Trait(name, float(mean), float(other), float(apart), float(share), bool(flag))
            for name, mean, other, apart, share, flag in zip(subject.value_names, here, elsewhere, away, above, flags)
        ]
        result[j] = sorted(found, key=lambda trait: (-round(trait.strength, 2), -abs(trait.away)))
    return result


def _typical(subject: Subject, count: int = 3) -> dict[int, list[int]]:
    """The rows nearest to the centre."""
    result = {}
    for j in range(subject.k):
        own = np.flatnonzero(subject.labels == j)
        distance = np.linalg.norm(subject.space[own] - subject.centers[j], axis=1)
        result[j] = own[np.argsort(distance, kind="stable")[:count]].tolist()
    return result


def _mentions(subject: Subject, max_values: int = 50) -> dict[int, list[tuple[str, str, float, float]]]:
    """For columns that took no part and have few values: the value that is most common here beyond its due share."""
    result: dict[int, list[tuple[str, str, float, float]]] = {}
    used = set(subject.value_names)
    for name in [name for name in subject.table.columns if str(name) not in used][:20]:
        column = subject.table[name]
        if pd.api.types.is_float_dtype(column):
            continue
        codes, kinds = pd.factorize(column)
        if not 2 <= len(kinds) <= max_values:
            continue
        counts = np.zeros((subject.k, len(kinds)))
        valid = (codes >= 0) & (subject.labels >= 0)
        np.add.at(counts, (subject.labels[valid], codes[valid]), 1)
        overall = np.bincount(codes[codes >= 0], minlength=len(kinds)) / subject.n
        for j in np.flatnonzero(subject.sizes):
            shares = counts[j] / subject.sizes[j]
            best = int(np.argmax(shares - overall))
            if shares[best] - overall[best] > 0.1:
                entry = (str(name), str(kinds[best]), float(shares[best]), float(overall[best]))
                result.setdefault(int(j), []).append(entry)
    return result
