"""The tasks of a worker: read a table, cluster it, write its labels and its report."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pyarrow import feather

from coterie.studio import uploads
from coterie.studio.samples import SAMPLES
from coterie.studio.uploads import LEFT_OUT
from coterie.tables.label_files import write_labels
from coterie.tables.table import Table

Tell = Callable[[dict[str, Any]], None]


def prepare() -> None:
    """Import what the heavier tasks need."""
    import coterie.studio.clustering  # noqa: F401


def read(task: dict[str, Any], tell: Tell) -> dict[str, Any]:
    """Read an upload, a sample or drawn points into ``table.arrow``, its cells as they are into ``cells.arrow``, and
    describe the table."""
    folder = Path(task["folder"])
    notes: list[str] = []
    if "sample" in task:
        table = Table.of(SAMPLES[task["sample"]].make())
    elif "points" in task:
        table = Table.of(pd.DataFrame(task["points"], columns=["x", "y"], dtype=float))
    else:
        table, notes = uploads.read_upload(folder / "upload", task["name"], task["header"], task["bounds"])
    about = uploads.describe(table.frame)
    cells = table.cells(as_text=True) if table.texts is not None else uploads.plain(table.cells(as_text=False))
    feather.write_feather(cells, folder / "cells.arrow")
    feather.write_feather(uploads.plain(table.frame), folder / "table.arrow", compression="uncompressed")
    for leftover in folder.glob("upload*"):
        leftover.unlink()
    return {**about, "notes": notes}


def run(task: dict[str, Any], tell: Tell) -> dict[str, Any]:
    """Cluster a table."""
    from coterie.studio import clustering

    return clustering.run(_frame(task), task["wanted"], Path(task["folder"]), tell)


def edit(task: dict[str, Any], tell: Tell) -> dict[str, Any]:
    """Merge clusters of an earlier run, or split one."""
    from coterie.studio import clustering

    return clustering.edit(_frame(task), Path(task["earlier"]), task["step"], Path(task["folder"]), tell)


def labels(task: dict[str, Any], tell: Tell) -> dict[str, Any]:
    """Write ``labels.csv``: the whole table with the cluster, the certainty and whether the row is an outlier.

    These columns are empty for rows that took no part. Most users open the file in a spreadsheet: formulas are escaped.
    """
    folder, frame = Path(task["folder"]), feather.read_feather(Path(task["table"]).with_name("cells.arrow"))
    found = np.load(folder / "labels.npy", allow_pickle=False)
    took_part = np.flatnonzero(found != LEFT_OUT)
    with np.load(folder / "beside.npz", allow_pickle=False) as stored:
        known = {"cluster": found[took_part], **stored}
    names = json.loads((folder / "result.json").read_bytes())["names"]
    if names:
        called = ["outliers" if one < 0 else names.get(str(one), f"cluster {one}") for one in found[took_part]]
        known = {"cluster": known.pop("cluster"), "name": np.array(called), **known}
    columns = {name: pd.Series(values, took_part).convert_dtypes() for name, values in known.items()}
    beside = {name: column.reindex(range(len(frame))) for name, column in columns.items()}
    path = write_labels(folder / "labels.csv", beside.pop("cluster"), frame, beside, escape_formulas=True)
    return {"bytes": path.stat().st_size}


def names(task: dict[str, Any], tell: Tell) -> dict[str, Any]:
    """Name the clusters of a run."""
    from coterie.studio import clustering

    clustering.rename(Path(task["folder"]), {int(label): name for label, name in task["names"].items()})
    return {}


def axes(task: dict[str, Any], tell: Tell) -> dict[str, Any]:
    """The map of a run in other columns, in a file of its own."""
    from coterie.studio import row_maps

    folder = Path(task["folder"])
    (folder / task["file"]).write_text(json.dumps(row_maps.axes(folder, task["columns"]), allow_nan=False))
    return {}


def report(task: dict[str, Any], tell: Tell) -> dict[str, Any]:
    """Write ``report.html`` about the rows that took part."""
    from coterie.studio import clustering

    folder = Path(task["folder"])
    _, clustered = clustering.read(_frame(task), folder, task["name"])
    made = clustered.report(folder / "report.html", on_step=lambda step: tell({"stage": step}))
    return {"bytes": len(made.html)}


def granularity(task: dict[str, Any], tell: Tell) -> dict[str, Any]:
    """Write ``granularity.png``: what other numbers of clusters are worth."""
    from coterie.plot import save_granularity
    from coterie.studio import clustering

    folder = Path(task["folder"])
    _, clustered = clustering.read(_frame(task), folder, task["name"])
    return {"bytes": save_granularity(folder / "granularity.png", clustered.granularity()).stat().st_size}


def _frame(task: dict[str, Any]) -> pd.DataFrame:
    return feather.read_feather(task["table"], memory_map=False)


TASKS: dict[str, Callable[[dict[str, Any], Tell], dict[str, Any]]] = {
    task.__name__: task for task in (read, run, edit, labels, report, granularity, names, axes)
}
