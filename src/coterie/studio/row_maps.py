"""The map of a run: positions of rows and centres, in principal axes or in columns, and values beside each point."""

import base64
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.preprocessing import normalize

from coterie.plot.columns import encoded_columns
from coterie.plot.view import View, bulk
from coterie.tables.encoding import Encoded
from coterie.tabular import SettingError
from coterie.wording import plural

MAP_POINTS = 100_000
HOVER_COLUMNS, HOVER_CELLS = 6, 300_000  # values beside a point, and of all points together


class RowMap:
    """The positions of rows on the map: one or two columns in their own units, more columns by principal axes."""

    def __init__(self, rows: Encoded, spherical: bool):
        self.encoding, self.spherical = rows.encoding, spherical
        self.space = normalize(rows.points) if spherical else rows.points  # where distances are measured
        names = self.encoding.point_names
        self.own_units = len(names) <= 2 and not spherical and self.encoding.is_invertible
        self.view = View(self._shown(self.space), names, "auto", MAP_POINTS)

    def _shown(self, space: np.ndarray) -> np.ndarray:
        return self.encoding.original(space) if self.own_units else space

    def place(self, centers: np.ndarray) -> np.ndarray:
        placed = self.view.warped(self.view.place(self._shown(np.asarray(centers, dtype=np.float64))))
        return placed if placed.shape[1] == 2 else np.column_stack([placed, np.full(len(placed), 0.5)])

    def document(self, numbers: np.ndarray) -> dict[str, Any]:
        points = self.view.warped(self.view.points)
        if points.shape[1] == 1:  # points on a line are spread vertically, so that they can be told apart
            points = np.column_stack([points, np.random.default_rng(0).uniform(0.1, 0.9, len(points))])
        length = "every row has length 1" if self.spherical else ""
        return {"rows": packed(numbers.astype("<u4")), **_drawn(self.view, points, self.view.note, length)}


def _drawn(view: View, points: np.ndarray, note: str, more: str = "") -> dict[str, Any]:
    """Positions on a screen, and what to write beside them."""
    least, most = bulk(points)
    count = int(((points < least) | (points > most)).any(axis=1).sum())
    outside = f"{plural(count, 'point')} {'is' if count == 1 else 'are'} outside the frame" if count else ""
    return {
        "x": packed(points[:, 0].astype("<f4")),
        "y": packed(points[:, 1].astype("<f4")),
        "titles": [*view.titles, ""][:2],
        "logs": view.logs.tolist(),  # axes on which positions are logarithms to base 10
        "line": view.dims == 1,
        "frame": [least.tolist(), most.tolist()],
        "note": "; ".join(part for part in (note, outside, more) if part),
    }


def hover(rows: Encoded, shown: np.ndarray) -> list[dict[str, Any]]:
    """The first columns of the rows on the map, to be shown beside a point."""
    entries: list[dict[str, Any]] = []
    columns = rows.encoding.columns[: max(1, min(HOVER_COLUMNS, HOVER_CELLS // max(1, len(shown))))]
    for one in encoded_columns(rows.values[shown, : sum(column.width for column in columns)], columns):
        if one.levels is None:
            entries.append({"name": one.name, "values": packed(one.values.astype("<f4")), "dates": one.dates})
        else:
            codes = np.where(one.values < 0, len(one.levels), one.values).astype(np.uint8)
            entries.append({"name": one.name, "codes": packed(codes), "levels": [*one.levels, ""]})
    return entries


def axes(folder: Path, wanted: Sequence[str]) -> dict[str, Any]:
    """The map of a finished run in one or two of its columns, in the units of the table."""
    result = json.loads((folder / "result.json").read_bytes())
    unknown = [name for name in wanted if name not in result["columns"]]
    if unknown or not (folder / "values.npy").exists():
        raise SettingError("These axes are not available: choose columns that were clustered, of a smaller table.")
    places = [result["columns"].index(name) for name in wanted]
    values = np.load(folder / "values.npy", mmap_mode="r", allow_pickle=False)
    shown = np.load(folder / "shown.npy", allow_pickle=False)
    points = np.asarray(values[shown][:, places], dtype=np.float64)
    clusters = [one for one in result["clusters"] if one["label"] >= 0]
    view = View(points, wanted, (0, 1))
    note = "" if len(shown) == len(values) else f"{len(shown):,} of {len(values):,} points are shown"
    warped = view.warped(np.array([[one["center"][place] for place in places] for one in clusters])).tolist()
    by_label = {one["label"]: center for one, center in zip(clusters, warped)}
    centers = [by_label.get(label) for label in range(max(by_label, default=-1) + 1)]
    return {"centers": centers, **_drawn(view, view.warped(points), note)}


def packed(values: np.ndarray) -> str:
    """Numbers as base64 of their bytes: compact JSON that a browser reads quickly."""
    return base64.b64encode(np.ascontiguousarray(values).tobytes()).decode()
