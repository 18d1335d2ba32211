"""Clusters over a year: whether ids follow known clusters through twelve monthly tables, and what ``check`` says.

Every month is a table of Gaussian clusters. The first month is fitted, every later one continues it with ``previous``.
In a month either nothing happens, so that two tables differ by chance alone, or one thing does; in months with births,
deaths, splits and merges all clusters also drift a little.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from coterie import cluster_table
from coterie.living.matching import counts_of
from coterie.tabular import TableModel
from coterie_research.benchmarks.harness import Benchmark, Cell, Row, table

YEARS = 20
COLUMNS = 4
CLUSTERS = 5
ROWS = (120, 200, 200, 320)  # of a cluster
APART = 5.0  # least distance of two clusters, in standard deviations of a column
CHECKS = 5  # tables that are drawn and checked in a month without other changes
SLOW = 0.1  # the drift of every cluster in a month in which something happens
DRIFT = 0.5  # of one column of one cluster of 200 rows, in months of drift
EVENTS = ("nothing", "nothing", "nothing", "drift", "drift", "birth", "birth", "death", "death", "split", "merge")
METHODS = {
    "zero-shot": lambda k: {},
    "k-means, K given": lambda k: {"algorithm": "kmeans", "clusters": k, "scale": True},
}
BARS = {"ids": 0.95, "births": 0.8, "deaths": 0.8, "drift": 0.8, "alarms": 0.05}


class World:
    """Clusters with true ids: means and standard deviations of the columns, and numbers of rows."""

    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)
        self.unit = np.exp(self.rng.normal(0, 1.5, COLUMNS))  # columns in different units
        self.means: dict[int, np.ndarray] = {}
        self.stds: dict[int, np.ndarray] = {}
        self.rows: dict[int, int] = {}
        self.following = 0
        for _ in range(CLUSTERS):
            self.born(self._free_place())

    def _free_place(self, near: np.ndarray | None = None) -> np.ndarray:
        while True:
            place = self.rng.uniform(0, 15, COLUMNS)
            if near is not None:
                way = self.rng.normal(size=COLUMNS)
                place = near + 1.2 * APART * way / np.linalg.norm(way)
            if all(np.linalg.norm(place - one) >= APART for one in self.means.values()):
                return place

    def born(self, mean: np.ndarray, rows: int | None = None) -> int:
        label, self.following = self.following, self.following + 1
        self.means[label], self.stds[label] = mean, self.rng.uniform(0.7, 1.3, COLUMNS)
        self.rows[label] = int(self.rng.choice(ROWS)) if rows is None else rows
        return label

    def ended(self, label: int) -> None:
        for known in (self.means, self.stds, self.rows):
            del known[label]

    def happens(self, event: str) -> int | None:
        """Change the clusters. The cluster that was born, that ended or that drifted is returned."""
        ids = list(self.means)
        if event == "nothing":
            return None
        if event == "drift":
            label = int(self.rng.choice(ids))
            self.rows[label] = 200
            return label
        for label in ids:
            step = self.rng.normal(size=COLUMNS)
            self.means[label] = self.means[label] + SLOW * step / np.linalg.norm(step)
        if event == "birth":
            return self.born(self._free_place())
        label = int(self.rng.choice(ids))
        if event == "death":
            self.ended(label)
        elif event == "merge":  # its rows become like those of the nearest cluster
            other = min(set(ids) - {label}, key=lambda one: np.linalg.norm(self.means[one] - self.means[label]))
            label, other = sorted((label, other), key=lambda one: self.rows[one])
            self.rows[other] += self.rows[label]
            self.ended(label)
        else:  # two fifths of a cluster of 300 rows move away
            self.rows[label] = 180
            return self.born(self._free_place(self.means[label]), 120)
        return label

    def drawn(self, shift: tuple[int, int] | None = None) -> tuple[pd.DataFrame, np.ndarray]:
        """A table of this month and the true ids; ``shift`` is a cluster and a column that drift."""
        total, ids = sum(self.rows.values()), list(self.rows)
        truth = np.sort(self.rng.choice(ids, total, p=[self.rows[one] / total for one in ids]))
        values = np.array([self.means[one] for one in truth])
        spread = np.array([self.stds[one] for one in truth])
        if shift is not None:
            own = truth == shift[0]
            values[own, shift[1]] += DRIFT * spread[own, shift[1]]
        values += spread * self.rng.normal(size=values.shape)
        return pd.DataFrame(self.unit * values, columns=[f"x{i}" for i in range(COLUMNS)]), truth


class Fit(NamedTuple):
    """A month's model, and the id of each true cluster; None if no cluster has more than half of the rows of both."""

    model: TableModel
    id_of: dict[int, int | None]


def fit(frame: pd.DataFrame, truth: np.ndarray, method: str, previous: TableModel | None) -> Fit:
    true = np.unique(truth).tolist()
    made = cluster_table(frame, **METHODS[method](len(true)), previous=previous)
    counts = counts_of(truth, made.labels, true, made.ids)[:-1, :-1]
    half = counts > 0.5 * np.maximum(counts.sum(axis=1)[:, None], counts.sum(axis=0)[None])
    return Fit(made.model, {one: made.ids[row.argmax()] if row.any() else None for one, row in zip(true, half)})


def year(seed: int, method: str) -> list[Row]:
    """One row per month: what happened, and what was seen of it."""
    world = World(seed)
    last = fit(*world.drawn(), method, None)
    ever, rows = set(last.model.ids), []
    for event in world.rng.permutation(EVENTS).tolist():
        label: Any = world.happens(event)
        row: Row = {}
        if event == "drift":
            last = fit(*world.drawn(), method, last.model)
            ever |= set(last.model.ids)
        frame, truth = world.drawn()
        if event in ("drift", "nothing"):
            row["alarms"] = row["named"] = 0
            for column in world.rng.permutation(np.arange(CHECKS) % COLUMNS).tolist():
                frame, truth = world.drawn(None if event == "nothing" else (label, column))
                checked = last.model.check(frame)
                row["alarms"] += checked.changed
                changed = {(one.label, one.column) for one in checked.drifts if one.changed}
                row["named"] += event == "drift" and (last.id_of[label], f"x{column}") in changed
            if event == "drift":
                world.means[label][column] += DRIFT * world.stds[label][column]
        now = fit(frame, truth, method, last.model)
        both = [one for one in now.id_of if one in last.id_of]
        right = sum(now.id_of[one] is not None and now.id_of[one] == last.id_of[one] for one in both)
        if event in ("birth", "split"):
            row["seen"] = now.id_of[label] is not None and now.id_of[label] not in ever
        elif event in ("death", "merge"):
            row["seen"] = last.id_of[label] is not None and last.id_of[label] not in now.model.ids
        rows.append({"method": method, "event": event, "continued": len(both), "right": right, **row})
        last = now
        ever |= set(now.model.ids)
    return rows


def summary(rows: list[Row]) -> Row:
    """For every method and figure: in how many cases, and of how many."""
    found = {}
    for method in METHODS:
        own = [row for row in rows if row["method"] == method]

        def seen(event: str, entry: str = "seen", own: list[Row] = own) -> list[int]:
            chosen = [int(row[entry]) for row in own if row["event"] == event]
            return [sum(chosen), len(chosen) * (1 if entry == "seen" else CHECKS)]

        found[method] = {
            "ids": [sum(row["right"] for row in own), sum(row["continued"] for row in own)],
            **{f"{event}s": seen(event) for event in ("birth", "death", "split", "merge")},
            "drift": seen("drift", "named"),
            "alarms": seen("nothing", "alarms"),
        }
    return {"summary": found}


def page(record: Row) -> list[str]:
    heads = {
        "ids": "ids of continued clusters are right", "births": "births found", "deaths": "deaths found",
        "splits": "parts that moved away found", "merges": "clusters that moved into another one found",
        "drift": "drift found, with its cluster and column", "alarms": "false alarms of `check` on unchanged tables",
    }  # fmt: skip
    bars = {name: f"{'≤' if name == 'alarms' else '≥'} {bar:.0%}" for name, bar in BARS.items()}
    found = record["summary"]
    return table(
        ["", *found, "wanted"],
        [
            [head, *(f"{one[name][0]} of {one[name][1]} ({one[name][0] / max(one[name][1], 1):.1%})"
                     for one in found.values()), bars.get(name, "")]
            for name, head in heads.items()
        ],
    )  # fmt: skip


def cells(quick: bool) -> list[Cell]:
    return [
        Cell(f"year {seed}, {method}", partial(year, seed, method))
        for seed in range(1 if quick else YEARS)
        for method in METHODS
    ]


BENCHMARK = Benchmark(
    name="living",
    title="Clusters over a year",
    settings=lambda quick: {"years": 1 if quick else YEARS},
    cells=cells,
    summary=summary,
    intro=f"{{years}} years of twelve monthly tables with {COLUMNS} columns, which begin with {CLUSTERS} Gaussian "
    f"clusters of 120 to 320 rows, at least {APART:g} standard deviations apart. A cluster of the fit is a true "
    "cluster if they share more than half of the rows of each; its id is right if it is the one of the month before. "
    "A birth is found if the new cluster gets an id that was never used, a death if the id ends. Drift is one column "
    f"of one cluster of about 200 rows that moves by {DRIFT:g} standard deviations.",
    page=page,
)
