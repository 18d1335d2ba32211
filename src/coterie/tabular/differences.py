"""How clusters differ: the columns that distinguish each one, its typical rows, and columns that were not used."""

from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from coterie.tabular.clustered_table import ClusteredTable, stratified_sample

RANKED_CELLS = 4_000_000
TYPICAL = 3  # rows per cluster


@dataclass(frozen=True)
class Trait:
    """One column of one cluster.

    ``here`` and ``elsewhere`` are the means in the cluster and in all other rows, ``away`` is their difference in
    standard deviations of the column, and ``above`` is the share of pairs in which a row of the cluster has the larger
    value.
    """

    column: str
    here: float
    elsewhere: float
    away: float
    above: float
    yes_or_no: bool = False

    @property
    def strength(self) -> float:
        """From 0 (the column is unrelated to the cluster) to 1 (it separates the cluster from all other rows)."""
        return abs(2 * self.above - 1)

    @property
    def words(self) -> str:
        if self.yes_or_no:
            return self._how_often
        very = "very " if abs(self.away) >= 1.5 else "" if abs(self.away) >= 0.6 else "slightly "
        return f"{very}{'high' if self.away > 0 else 'low'}"

    @property
    def _how_often(self) -> str:
        for least, words in ((0.9, "almost always"), (0.5, "mostly"), (0.1, "often" if self.away > 0 else "rarely")):
            if self.here >= least:
                return words
        return "almost never"


@dataclass(frozen=True)
class Portrait:
    """One cluster: its traits, the strongest first; its most typical rows; values of columns that were not used."""

    label: int
    size: int
    share: float
    traits: list[Trait]
    typical: list[int]
    mentions: list[tuple[str, str, float, float]]  # column, value, share here, share of all rows

    def in_words(self, count: int = 3) -> str:
        told = [f"{trait.words} {trait.column}" for trait in self.traits[:count] if trait.strength > 0.3]
        few = len(self.traits) == 1
        return ", ".join(told) or (
            f"average {self.traits[0].column}" if few else "close to the average in every column"
        )


def portraits(clustered: ClusteredTable) -> list[Portrait]:
    """One portrait per cluster that has rows, in the order of the labels."""
    traits = _traits(clustered)
    mentions = _mentions(clustered)
    return [
        Portrait(
            j,
            int(size),
            float(size / clustered.n),
            traits[j],
            clustered.nearest_rows(j)[:TYPICAL].tolist(),
            mentions.get(j, []),
        )
        for j, size in enumerate(clustered.sizes)
        if size > 0
    ]


def _traits(clustered: ClusteredTable) -> dict[int, list[Trait]]:
    values, labels = clustered.values, clustered.labels
    rows = stratified_sample(labels, max(2_000, RANKED_CELLS // max(1, values.shape[1])))
    drawn = labels[rows]
    ranks = rankdata(values[rows], axis=0)
    spread = values.std(axis=0, dtype=np.float64)
    spread = np.where(spread > 0, spread, 1.0)
    total = values.sum(axis=0, dtype=np.float64)
    flags = ((values == 0) | (values == 1)).all(axis=0)
    result = {}
    for j, size in enumerate(clustered.sizes):
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
            for name, mean, other, apart, share, flag in zip(clustered.value_names, here, elsewhere, away, above, flags)
        ]
        result[j] = sorted(found, key=lambda trait: (-round(trait.strength, 2), -abs(trait.away)))
    return result


def _mentions(clustered: ClusteredTable, max_values: int = 50) -> dict[int, list[tuple[str, str, float, float]]]:
    """For unused columns with few values: the value that is most overrepresented in the cluster."""
    import pandas as pd

    result: dict[int, list[tuple[str, str, float, float]]] = {}
    for name in clustered.unused_columns[:20]:
        column = clustered.table.frame[name]
        if pd.api.types.is_float_dtype(column):
            continue
        codes, kinds = pd.factorize(column)
        if not 2 <= len(kinds) <= max_values:
            continue
        counts = np.zeros((clustered.k, len(kinds)))
        valid = (codes >= 0) & (clustered.labels >= 0)
        np.add.at(counts, (clustered.labels[valid], codes[valid]), 1)
        overall = np.bincount(codes[codes >= 0], minlength=len(kinds)) / clustered.n
        for j in np.flatnonzero(clustered.sizes):
            shares = counts[j] / clustered.sizes[j]
            best = int(np.argmax(shares - overall))
            if shares[best] - overall[best] > 0.1:
                entry = (name, str(kinds[best]), float(shares[best]), float(overall[best]))
                result.setdefault(int(j), []).append(entry)
    return result
