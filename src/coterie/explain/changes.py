"""What changed between two models: sizes, flows of rows, drift of columns, and rows that fit no earlier cluster."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from coterie.explain.page import Page, bar, chip
from coterie.files import replacing
from coterie.living.checking import Drift, drift_pairs, drifts_of
from coterie.living.matching import Flows
from coterie.living.moments import Moments
from coterie.plot.flows import flows
from coterie.tabular.encoded_table import EncodedTable
from coterie.tabular.model import TableModel
from coterie.wording import cluster_name, joined, number, plural

MOST_DRIFTS = 40
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
        found = Flows.of(old, new, before.ids, after.ids)
        known, partner = before.living._moments(), found.partner
        then = {label: known[earlier] for label, earlier in partner.items() if earlier in known}
        pairs = drift_pairs(then, Moments.by_label(values, new), list(then))
        drifts = drifts_of(pairs, names, sum(len(one[1].mean) for one in pairs))
        return cls(before, after, found, drifts, np.flatnonzero(old < 0), rows.table)

    def _old(self, label: int | None) -> str:
        return cluster_name(-1 if label is None else label, self.before.names)

    def _new(self, label: int | None) -> str:
        return cluster_name(-1 if label is None else label, self.after.names)

    @property
    def sentences(self) -> list[str]:
        """What happened to the clusters, in words."""
        partner = self.flows.partner
        told = [f"{plural(len(partner), 'cluster')} continued."] if partner else ["No cluster continued."]
        for label, source in self.flows.came_from.items():
            told.append(
                f"{self._new(label)} is new."
                if source is None
                else f"{self._new(label)} is a part of {self._old(source)}."
            )
        for label, target in self.flows.went_to.items():
            told.append(
                f"{self._old(label)} ended." if target is None else f"{self._old(label)} is now in {self._new(target)}."
            )
        moved = [one for one in self.drifts if one.changed]
        if moved:
            where = [f"{one.column} of {self._new(one.label)} ({one.away:+.2g} standard deviations)" for one in moved]
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
            "drifts": [vars(one) for one in self.drifts if one.changed],
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
        parts = {
            "Summary": [("list", self.sentences)],
            "Flows": [("figure", page.figure(drawn, "Rows in the clusters of the earlier and the later model", 0))],
            "Sizes": [
                (
                    "table",
                    ["", "", "before", "now", "share"],
                    self._sizes(),
                    "Rows of this table in every cluster of the two models",
                    2,
                )
            ],
            "Drift": [self._drift_part()],
        }
        if len(self.unfit):
            heads, rows = self._unfit_rows()
            parts["Rows that fit no earlier cluster"] = [
                ("table", ["row", *heads], rows, "Some of these rows", len(heads))
            ]
        rows_told = (
            f"{plural(int(found.counts.sum()), 'row')}, {len(found.old)} earlier and {len(found.new)} later clusters."
        )
        text = page.html(title=title, subtitle=rows_told, sections=list(parts), parts=parts)
        if path is not None:
            with replacing(path) as temporary:
                temporary.write_text(text, encoding="utf-8")
        return text

    def _sizes(self) -> list[list[Any]]:
        found = self.flows
        then, now = found.counts.sum(axis=1).tolist(), found.counts.sum(axis=0).tolist()
        partner, total = found.partner, max(1, int(found.counts.sum()))
        place_old = {label: i for i, label in enumerate(found.old)}
        rows = []
        for i, label in enumerate(found.new):
            mark = partner.get(label, label)
            was = f"{then[place_old[partner[label]]]:,}" if label in partner else "–"
            rows.append(
                [chip(mark, self._new(label)), bar(mark, now[i] / total), was, f"{now[i]:,}", f"{now[i] / total:.1%}"]
            )
        for label in found.went_to:
            rows.append([chip(label, self._old(label)), "ended", f"{then[place_old[label]]:,}", "–", "–"])
        return rows

    def _drift_part(self) -> tuple[Any, ...]:
        moved = [one for one in self.drifts if one.changed][:MOST_DRIFTS]
        if not self.drifts:
            return ("text", "The earlier model does not remember the columns of its fit, so drift is not known.")
        if not moved:
            return ("text", "No column of a cluster that continued differs from the earlier model by more than chance.")
        rows = [
            [chip(self.flows.partner[one.label], self._new(one.label)), one.column, number(one.before), number(one.now),
             f"{one.away:+.2f}", "< .001" if one.p < 0.001 else f"{one.p:.3f}"]
            for one in moved
        ]  # fmt: skip
        heads = ["", "column", "before", "now", "standard deviations", "p, corrected"]
        return ("table", heads, rows, "Means of columns that changed within a cluster", 2)

    def _unfit_rows(self) -> tuple[list[str], list[list[str]]]:
        names = [name for name in self.before.encoding.sources if name in self.table.names][:COLUMNS]
        frame = self.table.frame.iloc[self.unfit[:FAR_ROWS]]
        shown = [
            [str(place + 1), *(number(value) if isinstance(value, float) else str(value) for value in row)]
            for place, row in zip(self.unfit.tolist(), frame[names].itertuples(index=False))
        ]
        return names, shown


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
