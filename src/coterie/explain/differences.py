"""How clusters differ: the columns that distinguish each one, its typical rows, and columns that were not used."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial.distance import cdist
from scipy.stats import rankdata

from coterie.explain.rules import Rule, rules
from coterie.plot.columns import Column, shares_of
from coterie.selection import stratified_sample
from coterie.tables.texts import TextCluster
from coterie.tabular.clustered_table import ClusteredTable

RANKED_CELLS = 4_000_000
TYPICAL = 3  # rows per cluster, and as many on its border


@dataclass(frozen=True)
class Trait:
    """One column of one cluster; of a category, its most distinctive level.

    ``here`` and ``elsewhere`` are the means in the cluster and in all other rows, ``away`` is their difference in
    standard deviations of the column, and ``above`` is the share of pairs in which a row of the cluster has the larger
    value. ``here_text`` and ``elsewhere_text`` are what the means say in the words of the table.
    """

    column: str
    here: float
    elsewhere: float
    away: float
    above: float
    level: str | None = None
    here_text: str = ""
    elsewhere_text: str = ""
    on_circle: bool = False

    @property
    def strength(self) -> float:
        """From 0 (the column is unrelated to the cluster) to 1 (it separates the cluster from all other rows)."""
        return abs(2 * self.above - 1)

    @property
    def words(self) -> str:
        if self.level is not None:
            return f"{self._how_often} {self.column} = {self.level}"
        if self.on_circle:
            return f"{self.column} around {self.here_text}"
        very = "very " if abs(self.away) >= 1.5 else "" if abs(self.away) >= 0.6 else "slightly "
        return f"{very}{'high' if self.away > 0 else 'low'} {self.column}"

    @property
    def compared(self) -> str:
        """How the cluster compares: a level is more frequent, or a value is higher in a share of all pairs of rows."""
        if self.level is not None:
            return f"{self.level} {'more' if self.here >= self.elsewhere else 'less'} often"
        share = max(self.above, 1 - self.above)
        return f"{'higher' if self.above >= 0.5 else 'lower'} in {min(share, 0.999) if share < 1 else 1:.0%} of pairs"

    @property
    def _how_often(self) -> str:
        for least, words in ((0.9, "almost always"), (0.5, "mostly"), (0.1, "often" if self.away > 0 else "rarely")):
            if self.here >= least:
                return words
        return "almost never"


@dataclass(frozen=True)
class Portrait:
    """One cluster: its traits, the strongest first; its most typical rows, and those on its border."""

    label: int
    size: int
    share: float
    traits: list[Trait]
    typical: list[int]
    borderline: list[int]
    mentions: list[tuple[str, str, float, float]]  # columns that were not used: value, share here, share of all rows
    rule: Rule | None = None
    about: TextCluster | None = None  # of clusters of texts

    def in_words(self, count: int = 3) -> str:
        if self.about is not None:
            return ", ".join(self.about.words)
        told = [trait.words for trait in self.traits[:count] if trait.strength > 0.3]
        few = len(self.traits) == 1
        return ", ".join(told) or (
            f"average {self.traits[0].column}" if few else "close to the average in every column"
        )


def portraits(clustered: ClusteredTable) -> list[Portrait]:
    """One portrait per cluster that has rows, in the order of the labels."""
    traits, mentions, found = _traits(clustered), _mentions(clustered), rules(clustered)
    made = []
    for j in np.flatnonzero(clustered.sizes).tolist():
        size, typical = int(clustered.sizes[j]), clustered.nearest_rows(j)[:TYPICAL].tolist()
        border, beside, about = _borderline(clustered, j), mentions.get(j, []), clustered.texts.get(j)
        made.append(Portrait(j, size, size / clustered.n, traits[j], typical, border, beside, found.get(j), about))
    return made


def _borderline(clustered: ClusteredTable, label: int) -> list[int]:
    """The rows of a cluster that could most easily belong to another one."""
    own = np.flatnonzero(clustered.labels == label)
    if int((clustered.sizes > 0).sum()) < 2 or len(own) <= TYPICAL:
        return []
    certainty = getattr(clustered.estimator, "certainty_", None)
    if certainty is not None and len(certainty) == clustered.n:
        return own[np.argsort(np.asarray(certainty)[own], kind="stable")[:TYPICAL]].tolist()
    distance = cdist(clustered.space[own], clustered.centers)
    mine = distance[:, label].copy()
    distance[:, [label, *np.flatnonzero(clustered.sizes == 0)]] = np.inf
    return own[np.argsort(distance.min(axis=1) - mine, kind="stable")[:TYPICAL]].tolist()


def _traits(clustered: ClusteredTable) -> dict[int, list[Trait]]:
    values, labels = clustered.values, clustered.labels
    rows = stratified_sample(labels, max(2_000, RANKED_CELLS // max(1, values.shape[1])))
    drawn = labels[rows]
    ranks = rankdata(values[rows], axis=0)
    spread = values.std(axis=0, dtype=np.float64)
    spread = np.where(spread > 0, spread, 1.0)
    total = values.sum(axis=0, dtype=np.float64)
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
        found = [_trait(one, here, elsewhere, away, above) for one in clustered.fields]
        result[j] = sorted(found, key=lambda trait: (-round(trait.strength, 2), -abs(trait.away)))
    return result


def _trait(one: Column, here: np.ndarray, elsewhere: np.ndarray, away: np.ndarray, above: np.ndarray) -> Trait:
    own = one.own
    place = one.first + int(np.abs(2 * above[own] - 1).argmax())
    inside, outside = float(here[place]), float(elsewhere[place])
    made = Trait(one.name, inside, outside, float(away[place]), float(above[place]))
    if one.levels is not None:
        texts = (one.shares(here[own]), one.shares(elsewhere[own]))
        return replace(made, level=one.levels[place - one.first], here_text=texts[0], elsewhere_text=texts[1])
    texts = (one.show(inside), one.show(outside))
    return replace(made, here_text=texts[0], elsewhere_text=texts[1], on_circle=bool(one.cycle))


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
        overall = shares_of(codes, len(kinds))
        for j in np.flatnonzero(clustered.sizes):
            shares = shares_of(codes[clustered.labels == j], len(kinds))
            best = int(np.argmax(shares - overall))
            if shares[best] - overall[best] > 0.1:
                entry = (name, str(kinds[best]), float(shares[best]), float(overall[best]))
                result.setdefault(int(j), []).append(entry)
    return result
