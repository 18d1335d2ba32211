"""Labels of rows, written to CSV, TSV, Parquet, Excel and NPY files."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from coterie.data.columns import TableError
from coterie.data.databases import require_package
from coterie.data.tables import Table, file_type
from coterie.files import check_writable, replacing

WRITTEN = (".csv", ".tsv", ".parquet", ".xlsx", ".npy")
MOST_EXCEL_ROWS = 1_048_575


def write_labels(path: str | os.PathLike, labels: Any, table: Any = None, profile: Any = None) -> Path:
    """Write one label per row, in the order of the rows, to a column ``cluster``.

    Parameters
    ----------
    path : path
        A .csv, .tsv, .parquet, .xlsx or .npy file. It is written completely or not at all.
    labels : array of shape (n_rows,)
    table : DataFrame, optional
        Write its columns too, before the labels; not for .npy files.
    profile : DataFrame, optional
        One row per cluster, for a second sheet of an Excel workbook; other files do without it.

    Returns
    -------
    pathlib.Path
    """
    path = check_labels_path(path, with_data=table is not None)
    kind = file_type(path)
    if kind == ".npy":
        with replacing(path) as temporary, open(temporary, "wb") as file:
            np.save(file, labels)
        return path
    import pandas as pd

    column = pd.Series(labels, name="cluster")
    if table is None:
        written = column.to_frame()
    else:
        written = Table.of(table).frame.reset_index(drop=True)
        written[_unused_name("cluster", list(written.columns))] = column
    with replacing(path) as temporary:
        if kind == ".parquet":
            written.to_parquet(temporary, index=False)
        elif kind == ".xlsx":
            _write_workbook(temporary, {"rows": written, "clusters": profile})
        else:
            compression: Any = "gzip" if path.suffix.lower() == ".gz" else None
            written.to_csv(temporary, index=False, sep="\t" if kind == ".tsv" else ",", compression=compression)
    return path


def check_labels_path(path: str | os.PathLike, *, with_data: bool = False) -> Path:
    """Raise an error if labels could not be written there, before any work is done."""
    path = Path(path)
    kind = file_type(path)
    if kind not in WRITTEN:
        raise TableError(f"{path}: labels are not written as {kind}. Choose a name with {', '.join(WRITTEN)}.")
    if kind == ".npy" and with_data:
        raise TableError(f"{path} can hold labels only: to write them with the data, use .csv, .tsv or .parquet.")
    if kind == ".xlsx":
        require_package("openpyxl", "Writing an Excel workbook", "excel")
    return check_writable(path)


def _write_workbook(path: Path, sheets: dict[str, Any]) -> None:
    import pandas as pd

    with open(path, "wb") as file, pd.ExcelWriter(file, engine="openpyxl") as writer:
        for name, frame in sheets.items():
            if frame is None:
                continue
            if len(frame) > MOST_EXCEL_ROWS:
                raise TableError(
                    f"An Excel sheet has at most {MOST_EXCEL_ROWS:,} rows: write .csv or .parquet instead."
                )
            zoned = frame.select_dtypes("datetimetz").columns  # Excel has no time zones
            frame.assign(**{one: frame[one].dt.tz_convert(None) for one in zoned}).to_excel(
                writer, sheet_name=name, index=False
            )


def _unused_name(wanted: str, taken: Sequence[str]) -> str:
    name, number = wanted, 1
    while name in taken:
        number += 1
        name = f"{wanted}_{number}"
    return name
