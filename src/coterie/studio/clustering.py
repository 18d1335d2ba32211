"""One run of the studio: cluster the table, and write everything that the page may ask for into the run's folder."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from coterie.estimators.capabilities import fitted_inside, on_sphere, parameter
from coterie.explain.certainty import row_facts
from coterie.explain.differences import portraits
from coterie.files import replacing
from coterie.selection import Candidate
from coterie.studio import layers, uploads
from coterie.studio.row_maps import RowMap, hover, packed
from coterie.studio.settings import LARGEST_ID
from coterie.studio.uploads import LEFT_OUT
from coterie.tables.columns import TableError
from coterie.tables.encoding import Encoded
from coterie.tables.table import Table
from coterie.tabular import ClusteredTable, EncodedTable, TableModel, Watcher, cluster_table
from coterie.tabular.clustered_table import Run
from coterie.tabular.make_estimator import SettingError
from coterie.tabular.partial_labels import checked_names

ROWS_PER_CLUSTER = 200
SHOWN_COLUMNS = 60
OUTLIER = 255  # label of outliers in the map
STORED_BYTES = 2**29  # of encoded rows; larger ones are encoded again for a report
Tell = Callable[[dict[str, Any]], None]


def run(frame: Any, wanted: dict[str, Any], folder: Path, tell: Tell) -> dict[str, Any]:
    """Cluster a table. ``wanted`` are fields of :class:`Request`; the files are those of ``write``."""
    watcher = RunWatcher(folder, tell)
    clustered = cluster_table(frame, watcher=watcher, **wanted)
    tell({"stage": "describing"})
    return write(clustered, watcher, len(frame), folder)


class RunWatcher(Watcher):
    """Tells the page how far a run is, and keeps the layers of the final fit."""

    refits = True

    def __init__(self, folder: Path, tell: Tell):
        self.folder, self.tell = folder, tell
        self.map: RowMap | None = None
        self.recorder: layers.Recorder | None = None

    def on_encoded(self, rows: EncodedTable, estimator: Any) -> None:
        self.map = RowMap(rows.rows, on_sphere(estimator))
        shown = self.map.view.rows
        places = shown if rows.places is None else rows.places[shown]
        np.save(self.folder / "shown.npy", shown)
        _write_json(self.folder / "points.json", {**self.map.document(places + 1), "hover": hover(rows.rows, shown)})
        self.tell({"stage": "fitting", "placed": True})

    @contextmanager
    def choosing(self, ks: Sequence[int]) -> Iterator[Callable[[Candidate], Any]]:
        tried: list[list[float]] = []

        def on_candidate(one: Candidate) -> None:
            tried.append([one.k, one.score if np.isfinite(one.score) else 0.0])
            self.tell({"tried": tried, "to_try": len(ks)})

        self.tell({"stage": "choosing", "tried": [], "to_try": len(ks)})
        yield on_candidate

    @contextmanager
    def fitting(self, estimator: Any) -> Iterator[None]:
        self.tell({"stage": "fitting"})
        assert self.map is not None
        self.recorder = layers.Recorder(self.tell, self.map.place, int(parameter(estimator, "n_init", 1)))
        layers.watch(estimator, self.recorder)
        yield

    def steps(self, final: np.ndarray) -> list[np.ndarray]:
        """The centres in every layer of the start that was kept."""
        return [] if self.recorder is None else self.recorder.best(final)


def rename(folder: Path, names: dict[int, str]) -> None:
    """Give the clusters of a finished run names, which its labels, model and report then have."""
    path = folder / "result.json"
    result = json.loads(path.read_bytes())
    names = checked_names(names, [one["label"] for one in result["clusters"] if one["label"] >= 0])
    model = TableModel.load(folder / "model.safetensors")
    replace(model, names=names).save(folder / "model.safetensors")
    result["names"] = {str(label): name for label, name in names.items()}
    _write_json(path, result)
    for name in ("labels.csv", "report.html"):
        (folder / name).unlink(missing_ok=True)


def edit(frame: Any, earlier: Path, step: dict[str, Any], folder: Path, tell: Tell) -> dict[str, Any]:
    """A run with the clusters of an earlier one after one step of editing (:func:`settings.edit_step`)."""
    rows, clustered = read(frame, earlier, "")
    named = step.get("merge", [step["split"]] if "split" in step else [])
    unknown = [one for one in named if one not in clustered.ids]
    if unknown:
        raise SettingError(f"There is no cluster {unknown[0]} any more: open the run again.")
    watcher = RunWatcher(folder, tell)
    watcher.on_encoded(rows, clustered.estimator)
    if "clusters" in step:
        edited = clustered.recut(step["clusters"])
    else:
        edited = clustered.merge(named) if "merge" in step else clustered.split(step["split"], step["parts"])
    if max(edited.ids) > LARGEST_ID:
        raise SettingError("The clusters were split so often that the map has no numbers for more: fit again.")
    tell({"stage": "describing"})
    return write(edited, watcher, len(frame), folder)


def write(clustered: ClusteredTable, watcher: RunWatcher, n_rows: int, folder: Path) -> dict[str, Any]:
    """The files of a run.

    ``labels.npy``, ``beside.npz`` (certainty and outliers), ``model.safetensors``, ``map.json``, ``rows.json``,
    ``result.json`` and the encoded rows.
    """
    places = np.arange(n_rows) if clustered.places is None else clustered.places
    everywhere = np.full(n_rows, LEFT_OUT, dtype=np.int32)
    everywhere[places] = clustered.labels
    np.save(folder / "labels.npy", everywhere)
    beside: dict[str, Any] = row_facts(clustered)
    np.savez(folder / "beside.npz", **beside)
    clustered.model.save(folder / "model.safetensors")
    if clustered.values.nbytes + clustered.points.nbytes <= STORED_BYTES:
        np.save(folder / "values.npy", clustered.values)
        np.save(folder / "points.npy", clustered.points)
    _write_json(folder / "map.json", _map(clustered, watcher))
    _write_json(folder / "rows.json", _rows(clustered, places))
    result = _result(clustered) | {"left_out": n_rows - clustered.n}
    _write_json(folder / "result.json", result)
    return {"clusters": len(result["clusters"])}


def read(frame: Any, folder: Path, name: str) -> tuple[EncodedTable, ClusteredTable]:
    """The rows of a finished run as they were encoded then, and their clusters."""
    model = TableModel.load(folder / "model.safetensors")
    result = json.loads((folder / "result.json").read_bytes())
    used = np.flatnonzero(np.load(folder / "labels.npy", allow_pickle=False) != LEFT_OUT)
    table = Table.of(frame).take(used)
    if (folder / "points.npy").exists():
        values, points = (np.load(folder / f"{kind}.npy", allow_pickle=False) for kind in ("values", "points"))
        rows = EncodedTable(table, Encoded(model.encoding, values, points))
    else:
        rows = EncodedTable.apply(model.encoding, table)
    rows = replace(rows, places=used)
    how = Run(result["algorithm"], result["seed"], None, tuple(result["told"]), result["seconds"], name)
    return rows, replace(ClusteredTable.fitted(rows, model.estimator, how), names=model.names)


def _map(clustered: ClusteredTable, watcher: RunWatcher) -> dict[str, Any]:
    """Colours of the points and positions of the centres in every layer; the last one is the result."""
    assert watcher.map is not None
    row_map = watcher.map
    shown, used = clustered.labels[row_map.view.rows], set(clustered.ids)
    steps = watcher.steps(clustered.centers)
    played = layers.colours(row_map.space[row_map.view.rows].astype(np.float64), steps, shown)
    if not played:
        played = [{"layer": 1, "labels": shown, "cost": 0.0, "centers": clustered.centers}]
    return {
        "layers": [
            {
                "layer": one["layer"],
                "cost": one["cost"],
                "labels": packed(np.where(one["labels"] < 0, OUTLIER, one["labels"]).astype(np.uint8)),
                "centers": [
                    place if label in used else None
                    for label, place in enumerate(layers.rounded(row_map.place(one["centers"])))
                ],
            }
            for one in played
        ]
    }


def _rows(clustered: ClusteredTable, places: np.ndarray) -> dict[str, Any]:
    """Some rows of every cluster, those nearest to its centre first; of the outliers the farthest first."""
    table, chosen = clustered.table, clustered.model.encoding.sources
    names = (chosen + [name for name in table.names if name not in chosen])[:SHOWN_COLUMNS]
    document: dict[str, Any] = {"columns": names, "chosen": min(len(chosen), SHOWN_COLUMNS), "clusters": {}}
    for label in np.unique(clustered.labels).tolist():
        own = clustered.nearest_rows(label)
        shown = own[:ROWS_PER_CLUSTER]
        document["clusters"][str(label)] = {
            "total": len(own),
            "numbers": (places[shown] + 1).tolist(),
            "cells": uploads.cells(table.frame.iloc[shown][names]),
        }
    return document


def _result(clustered: ClusteredTable) -> dict[str, Any]:
    """What the page shows about the run as text and numbers: the facts, and words for every cluster and column."""
    facts, run, separation = clustered.facts, clustered.run, clustered.silhouettes
    told = {one.label: one for one in portraits(clustered)}
    words = {label: one.in_words() for label, one in told.items()} | {-1: "These rows belong to no cluster."}
    rules = {label: one.rule.text for label, one in told.items() if one.rule is not None}
    labels = [one.label for one in facts.summaries]
    return facts.document() | {
        "estimator": type(fitted_inside(clustered.estimator)).__name__,
        "used": len(facts.encoding.names),
        "silhouette": None if separation is None else separation.mean,
        "separation": None if separation is None else separation.words,
        "clusters": [
            {
                "label": one.label, "rows": one.size, "share": one.share, "words": words.get(one.label, ""),
                "rule": rules.get(one.label, ""), "center": list(one.center.values()),
            }
            for one in facts.summaries
        ],
        "profile": [(one.name, *reversed(one.profile(clustered.labels, labels))) for one in clustered.fields],
        "names": {str(label): name for label, name in clustered.names.items()},
        "history": clustered.history,
        "told": run.notes,
        "notes": [*facts.notes[len(run.notes) :], *run.notes],
    }  # fmt: skip


def _write_json(path: Path, document: dict[str, Any]) -> None:
    """Atomically: the server may read the file at any time."""
    try:
        text = json.dumps(document, allow_nan=False)
    except ValueError:
        raise TableError("The numbers of a column are too large for computations: divide them by a constant.") from None
    with replacing(path) as temporary:
        temporary.write_text(text)
