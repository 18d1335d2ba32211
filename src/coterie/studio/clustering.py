"""One run: fit the chosen columns, and write everything that the page may ask for into the run's folder."""

import base64
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.preprocessing import normalize

from coterie.data.encoding import values_of
from coterie.data.tables import TableError, is_number
from coterie.plot.view import View, bulk
from coterie.reporting.cautions import cautions
from coterie.reporting.differences import portraits
from coterie.reporting.quality import sureness
from coterie.reporting.sections import words_for_silhouette
from coterie.reporting.subject import Subject
from coterie.selection import Choice, choose_k, on_sphere
from coterie.studio import layers, uploads
from coterie.studio.settings import CHOICES
from coterie.studio.uploads import LEFT_OUT
from coterie.tabular import Columns, TableModel, summarise

MAP_POINTS = 100_000
ROWS_OF_A_CLUSTER = 200
SHOWN_COLUMNS = 60
LARGE = 100_000  # rows: from here on one start instead of ten
NOBODY = 255  # in the map: outliers
Tell = Callable[[dict[str, Any]], None]


def run(frame: pd.DataFrame, wanted: dict[str, Any], folder: Path, tell: Tell) -> dict[str, Any]:
    """Cluster a table as ``wanted`` (``RunSettings``) says. The files are those of ``write``."""
    started = time.perf_counter()
    rows = _kept_rows(frame, wanted)
    used = frame if len(rows) == len(frame) else frame.iloc[rows].reset_index(drop=True)
    complete = all(is_number(used[name]) and not used[name].isna().any() for name in wanted["columns"])
    columns = Columns.of(used, wanted["columns"], scale=wanted["scale"], encode=not complete)
    model = _model(columns, wanted, len(used))
    ground = Ground(model, used)
    _write_json(folder / "points.json", ground.document(rows))
    tell({"stage": "fitting", "placed": True})
    choice, told = None, []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if CHOICES[wanted["algorithm"]].counts:
            choice = _choose(model, used, wanted, tell)
        estimator, steps = _fit(model, used, ground, tell)
    told = columns.notes(used, wanted["columns"])
    told += sorted({" ".join(str(one.message).split()) for one in caught if issubclass(one.category, UserWarning)})
    tell({"stage": "describing"})
    fitted = TableModel(estimator, columns)
    seconds = time.perf_counter() - started
    return write(fitted, used, rows, len(frame), ground, steps, folder, choice, told, seconds)


class Ground:
    """Where rows stand on the map: one or two columns in their own units, more by principal axes."""

    def __init__(self, model: TableModel, frame: pd.DataFrame):
        self.columns = model.columns
        matrix = self.columns.matrix(frame)
        self.spherical = on_sphere(model.estimator)
        self.space = normalize(matrix) if self.spherical else matrix  # where the estimator measures distances
        names = self.columns.place_names
        self.own_units = len(names) <= 2 and not self.spherical and not self.columns.has_categories
        self.view = View(self._seen(self.space), names, "auto", MAP_POINTS)

    def _seen(self, space: np.ndarray) -> np.ndarray:
        return self.columns.original(space) if self.own_units else space

    def place(self, centers: np.ndarray) -> np.ndarray:
        placed = self.view.place(self._seen(np.asarray(centers, dtype=np.float64)))
        return placed if placed.shape[1] == 2 else np.column_stack([placed, np.full(len(placed), 0.5)])

    def document(self, rows: np.ndarray) -> dict[str, Any]:
        points = self.view.points
        if points.shape[1] == 1:  # on a line, points are spread upwards so that they can be told apart
            points = np.column_stack([points, np.random.default_rng(0).uniform(0.1, 0.9, len(points))])
        titles = [*self.view.titles, ""][:2]
        return {
            "x": packed(points[:, 0].astype("<f4")),
            "y": packed(points[:, 1].astype("<f4")),
            "rows": packed((rows[self.view.rows] + 1).astype("<u4")),
            "titles": titles,
            "line": self.view.dims == 1,
            "frame": [side.tolist() for side in bulk(points)],
            "note": self.view.note + ("; every row has length 1" if self.spherical else ""),
        }


def _kept_rows(frame: pd.DataFrame, wanted: dict[str, Any]) -> np.ndarray:
    if not wanted["drop_missing"]:
        return np.arange(len(frame))
    rows = np.flatnonzero(np.logical_and.reduce([_known(frame[name]) for name in wanted["columns"]]))
    if not len(rows):
        raise TableError("Every row has a missing value in one of the chosen columns: choose fewer columns.")
    return rows


def _known(column: pd.Series) -> np.ndarray:
    values = values_of(column)
    return values != None if values.dtype == object else np.isfinite(values)  # noqa: E711


def _model(columns: Columns, wanted: dict[str, Any], n_rows: int) -> TableModel:
    return TableModel.of(
        columns,
        wanted["algorithm"],
        {"n_init": wanted["starts"] or (10 if n_rows <= LARGE else 1), "init": wanted["start"]},
        random_state=wanted["seed"],
        trim=wanted["trim"] if CHOICES[wanted["algorithm"]].trims else None,
    )


def _choose(model: TableModel, frame: pd.DataFrame, wanted: dict[str, Any], tell: Tell) -> Choice | None:
    """Set the number of clusters: the one that was asked for, or the best of several."""
    if wanted["clusters"] is not None:
        if wanted["clusters"] > len(frame):
            raise TableError(
                f"{wanted['clusters']} clusters need as many rows, and there are {len(frame)}: take fewer."
            )
        model.estimator.set_params(n_clusters=wanted["clusters"])
        return None
    low = 1 if wanted["criterion"] == "gap" else 2
    ks = [k for k in range(low, wanted["most"] + 1) if k < len(frame)]
    if not ks:
        raise TableError("There are too few rows to choose a number of clusters: give the number.")
    tried: list[list[float]] = []

    def on_candidate(one: Any) -> None:
        tried.append([one.k, one.score if np.isfinite(one.score) else 0.0])
        tell({"tried": tried, "to_try": len(ks)})

    tell({"stage": "choosing", "tried": [], "to_try": len(ks)})
    choice = choose_k(
        model.estimator, model.input(frame), ks,
        criterion=wanted["criterion"], random_state=wanted["seed"], on_candidate=on_candidate,
    )  # fmt: skip
    model.estimator.set_params(n_clusters=choice.k)
    return choice


def _fit(model: TableModel, frame: pd.DataFrame, ground: Ground, tell: Tell) -> tuple[Any, list[np.ndarray]]:
    """Fit, and keep the layers. After a choice this is the chosen fit once more: the same seed gives the same fit."""
    tell({"stage": "fitting"})
    recorder = layers.Recorder(tell, ground.place, int(getattr(model.estimator, "n_init", 1)))
    watched = clone(model.estimator)
    layers.watch(watched, recorder)
    watched.fit(model.input(frame))
    return watched, recorder.best(np.asarray(watched.cluster_centers_, dtype=np.float64))


def write(
    fitted: TableModel, frame: pd.DataFrame, rows: np.ndarray, n_rows: int, ground: Ground, steps: list[np.ndarray],
    folder: Path, choice: Choice | None, told: list[str], seconds: float,
) -> dict[str, Any]:  # fmt: skip
    """``labels.npy``, ``model.safetensors``, ``map.json``, ``rows.json`` and ``result.json``."""
    labels = np.asarray(fitted.estimator.labels_)
    everywhere = np.full(n_rows, LEFT_OUT, dtype=np.int32)
    everywhere[rows] = labels
    np.save(folder / "labels.npy", everywhere)
    fitted.save(folder / "model.safetensors")
    summaries = summarise(fitted, frame, labels)
    _write_json(folder / "map.json", _map(fitted, ground, labels, steps, summaries))
    _write_json(folder / "rows.json", _rows(fitted, frame, rows, ground, labels))
    result = _result(fitted, frame, labels, summaries, choice, told)
    result |= {"seconds": seconds, "rows": len(frame), "left_out": n_rows - len(frame)}
    _write_json(folder / "result.json", result)
    return {"clusters": len(result["clusters"])}


def _map(
    fitted: TableModel, ground: Ground, labels: np.ndarray, steps: list[np.ndarray], summaries: list
) -> dict[str, Any]:
    """Colours of the points and places of the centres in every layer; the last one is the result."""
    shown = labels[ground.view.rows]
    played = layers.colours(ground.space[ground.view.rows].astype(np.float64), steps, shown)
    if not played:
        ends = np.asarray(fitted.estimator.cluster_centers_, dtype=np.float64)
        played = [{"layer": 1, "labels": shown, "cost": 0.0, "centers": ends}]
    return {
        "layers": [
            {
                "layer": one["layer"],
                "cost": one["cost"],
                "labels": packed(np.where(one["labels"] < 0, NOBODY, one["labels"]).astype(np.uint8)),
                "centers": layers.rounded(ground.place(one["centers"])),
            }
            for one in played
        ]
    }


def _rows(
    fitted: TableModel, frame: pd.DataFrame, rows: np.ndarray, ground: Ground, labels: np.ndarray
) -> dict[str, Any]:
    """Of every cluster the rows nearest to its centre first; of the outliers the farthest first."""
    centers = np.asarray(fitted.estimator.cluster_centers_, dtype=np.float64)
    chosen = list(fitted.columns.source or fitted.columns.names)
    names = (chosen + [name for name in frame.columns if name not in chosen])[:SHOWN_COLUMNS]
    document: dict[str, Any] = {"columns": names, "chosen": min(len(chosen), SHOWN_COLUMNS), "clusters": {}}
    for label in np.unique(labels).tolist():
        own = np.flatnonzero(labels == label)
        space = ground.space[own]
        if label >= 0:
            order = np.argsort(((space - centers[label]) ** 2).sum(axis=1), kind="stable")
        else:
            order = np.argsort(-np.min([((space - center) ** 2).sum(axis=1) for center in centers], axis=0))
        own = own[order[:ROWS_OF_A_CLUSTER]]
        document["clusters"][str(label)] = {
            "total": int((labels == label).sum()),
            "numbers": (rows[own] + 1).tolist(),
            "cells": uploads.cells(frame.iloc[own][names]),
        }
    return document


def _result(
    fitted: TableModel, frame: pd.DataFrame, labels: np.ndarray, summaries: list, choice: Choice | None, told: list[str]
) -> dict[str, Any]:
    """What the page says about the run in words and numbers."""
    estimator = fitted.estimator
    columns = fitted.columns
    subject = Subject.of(estimator, fitted.input(frame), columns.table(frame), list(columns.names))
    sure = sureness(subject)
    words = {one.label: one.in_words() for one in portraits(subject)} | {-1: "far from every centre"}
    notes = [one.what for one in cautions(subject, sure, "", None, choice, told)]
    return {
        "estimator": type(estimator).__name__,
        "columns": list(columns.names),
        "used": len(columns.source or columns.names),
        "scaled": not columns.raw,
        "iterations": int(getattr(estimator, "n_iter_", 0)),
        "inertia": float(estimator.inertia_) if hasattr(estimator, "inertia_") else None,
        "silhouette": None if sure is None else sure.mean,
        "separation": None if sure is None else words_for_silhouette(sure.mean),
        "clusters": [
            {
                "label": one.label, "size": one.size, "share": one.share, "words": words.get(one.label, ""),
                "center": list(one.center.values()), "deviation": list(one.deviation.values()),
            }
            for one in summaries
        ],
        "choice": None if choice is None else {
            "criterion": choice.criterion, "k": choice.k, "at_edge": choice.at_edge,
            "candidates": [[one.k, one.score if np.isfinite(one.score) else None] for one in choice.candidates],
        },
        "notes": notes,
    }  # fmt: skip


def packed(values: np.ndarray) -> str:
    """Numbers as base64 of their bytes: JSON that is small, and quick to read in a browser."""
    return base64.b64encode(np.ascontiguousarray(values).tobytes()).decode()


def _write_json(path: Path, document: dict[str, Any]) -> None:
    try:
        path.write_text(json.dumps(document, allow_nan=False))
    except ValueError:
        raise TableError("The numbers of a column are too large to reckon with: divide them by their size.") from None
