"""What changed between two models: sizes, flows of rows, drift of columns, and rows that fit no earlier cluster."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from coterie.explain.page import Page
from coterie.files import replacing
from coterie.living.checking import Drift, drift_pairs, drifts_of
from coterie.living.matching import Flows, is_edit, merged_since
from coterie.living.moments import Moments, pooled
from coterie.plot.relations import flows
from coterie.tabular.encoded_table import EncodedTable
from coterie.tabular.model import TableModel
from coterie.wording import cluster_name, joined, number, number_and_name, plural

FAR_ROWS = 12
COLUMNS = 8


@dataclass(frozen=True)
class Changes:
    """The clusters of two models on one table. Earlier clusters are those that the rows fit."""

    before: TableModel
    after: TableModel
    flows: Flows
    drifts: tuple[Drift, ...]  # by the new ids
    unfit: np.ndarray  # places of the rows that fit no earlier cluster
    table: Any

    @classmethod
    def of(cls, before: TableModel, after: TableModel, table: Any) -> "Changes":
        rows = EncodedTable.apply(before.encoding, table)
        values, names = rows.rows.values, rows.encoding.value_names
        old, new = before.living.places(rows.rows), after.predict(rows.table)
        edited = is_edit(before.living, after.living)
        merged = merged_since(before.living, after.living) if edited else {}
        found = Flows.of(old, new, before.ids, after.ids, same_ids=edited, merged=merged)
        then = after.living._moments() if edited else _moments_then(found, before.living._moments())
        then = {label: then[label] for label in found.partner if label in then}
        pairs = drift_pairs(then, Moments.by_label(values, new), list(then))
        drifts = drifts_of(pairs, names, sum(len(one[1].mean) for one in pairs))
        return cls(before, after, found, drifts, np.flatnonzero(old < 0), rows.table)

    def old(self, label: int | None) -> str:
        return cluster_name(-1 if label is None else label, self.before.names)

    def new(self, label: int | None) -> str:
        return cluster_name(-1 if label is None else label, self.after.names)

    @property
    def moved(self) -> list[Drift]:
        """The columns that changed within a cluster, by more than chance."""
        return [one for one in self.drifts if one.changed]

    @property
    def sentences(self) -> list[str]:
        """What happened to the clusters, in words."""
        partner = self.flows.partner
        told = [f"{plural(len(partner), 'cluster')} continued."] if partner else ["No cluster continued."]
        for label, source in self.flows.came_from.items():
            told.append(
                f"{self.new(label)} is new."
                if source is None
                else f"{self.new(label)} is a part of {self.old(source)}."
            )
        for label, target in self.flows.went_to.items():
            if label in self.flows.merged and target is not None:  # both may have the same name
                gone, kept = number_and_name(label, self.before.names), number_and_name(target, self.after.names)
                told.append(f"cluster {gone} was merged into cluster {kept}.")
                continue
            told.append(
                f"{self.old(label)} ended." if target is None else f"{self.old(label)} is now in {self.new(target)}."
            )
        if self.moved:
            where = [
                f"{one.column} of {self.new(one.label)} ({one.away:+.2g} standard deviations)" for one in self.moved
            ]
            told.append(f"Drifted: {joined(where, limit=4)}.")
        if len(self.unfit):
            share = len(self.unfit) / self.flows.counts.sum()
            told.append(f"{plural(len(self.unfit), 'row')} ({share:.1%}) fit no earlier cluster.")
        return [one[0].upper() + one[1:] for one in told]

    def document(self) -> dict[str, Any]:
        """The same as JSON."""
        found = self.flows
        return {
            "rows": int(found.counts.sum()),
            "before": [{"label": one, "name": self.before.names.get(one)} for one in found.old],
            "after": [{"label": one, "name": self.after.names.get(one)} for one in found.new],
            "counts": found.counts.tolist(),
            "continued": {str(new): old for new, old in found.partner.items()},
            "new": {str(label): source for label, source in found.came_from.items()},
            "ended": {str(label): target for label, target in found.went_to.items()},
            "drifts": [vars(one) for one in self.moved],
            "fit_no_earlier_cluster": len(self.unfit),
            "told": self.sentences,
        }

    def page(self, path: str | os.PathLike | None = None, title: str = "What changed") -> str:
        """One HTML file that opens without a network connection."""
        page, found = Page(), self.flows
        drawn = flows(
            found.counts, found.old, found.new, colors=found.partner, called_before=self.before.names,
            called=self.after.names,
        )  # fmt: skip
        place = page.figure(drawn, "Rows in the clusters of the earlier and the later model", 0)
        total = int(found.counts.sum())
        names = list(self.table.names)
        if len(names) > COLUMNS:
            names = [name for name in self.before.encoding.sources if name in names][:COLUMNS]
        told = f"{plural(total, 'row')}, {len(found.old)} earlier and {len(found.new)} later clusters."
        sections = ["Summary", "Flows", "Sizes", "Drift", *["Rows that fit no earlier cluster"] * bool(len(self.unfit))]
        text = page.html(
            "changes.html", title=title, subtitle=told, sections=sections, changes=self, flow_place=place, total=total,
            sizes=self._sizes(), heads=names, some=self._unfit_rows(names),
        )  # fmt: skip
        if path is not None:
            with replacing(path) as temporary:
                temporary.write_text(text, encoding="utf-8")
        return text

    def _sizes(self) -> list[tuple[int, str, int | None, int | None]]:
        """The colour and the name of every cluster, and its rows by the earlier and by the later model."""
        found = self.flows
        then = dict(zip(found.old, found.counts.sum(axis=1).tolist()))
        now = dict(zip(found.new, found.counts.sum(axis=0).tolist()))
        pairs = [(label, found.partner.get(label)) for label in found.new]
        rows = [
            (new if old is None else old, self.new(new), None if old is None else then[old], now[new])
            for new, old in pairs
        ]
        return [*rows, *((label, self.old(label), then[label], None) for label in found.went_to)]

    def _unfit_rows(self, names: list[str]) -> list[list[str]]:
        frame = self.table.frame.iloc[self.unfit[:FAR_ROWS]]
        return [
            [str(place + 1), *(number(value) if isinstance(value, float) else str(value) for value in row)]
            for place, row in zip(self.unfit.tolist(), frame[names].itertuples(index=False))
        ]


def _moments_then(found: Flows, known: dict[int, Moments]) -> dict[int, Moments]:
    """The moments of the rows of the earlier fit that are in each new cluster: of all clusters that it has joined."""
    parts: dict[int, list[Moments]] = {}
    ended = ((into, label) for label, into in found.went_to.items() if into is not None)
    for label, earlier in (*found.partner.items(), *ended):
        if earlier in known:
            parts.setdefault(label, []).append(known[earlier])
    return {label: pooled(each) for label, each in parts.items()}


def changes(before: Any, after: Any, table: Any) -> Changes:
    """Compare two models on a table.

    Parameters
    ----------
    before, after : :class:`coterie.tabular.TableModel` or path
    table : path, DataFrame or :class:`coterie.tables.table.Table`

    Returns
    -------
    Changes
        ``sentences``, ``flows``, ``drifts``, ``document()`` (JSON) and ``page(path)``.
    """
    from coterie.tables.table import Table

    old, new = (one if isinstance(one, TableModel) else TableModel.load(one) for one in (before, after))
    return Changes.of(old, new, Table.read(table) if isinstance(table, str | Path) else Table.of(table))
