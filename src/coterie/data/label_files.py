"""Labels of rows, written to CSV, TSV, Parquet, Excel and NPY files."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from coterie.data.columns import TableError
from coterie.data.databases import require_package
from coterie.data.tables import Table, file_type
from coterie.files import check_writable, replacing

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")  # of cells that spreadsheet programs evaluate
WRITTEN = (".csv", ".tsv", ".parquet", ".xlsx", ".npy")
MOST_EXCEL_ROWS = 1_048_575


def write_labels(
    path: str | os.PathLike,
    labels: Any,
    table: Any = None,
    beside: Mapping[str, Any] | None = None,
    *,
    profile: Any = None,
    escape_formulas: bool = False,
) -> Path:
    """Write one label per row, in the order of the rows, to a column ``cluster``.

    Parameters
    ----------
    path : path
        A .csv, .tsv, .parquet, .xlsx or .npy file. It is written completely or not at all.
    labels : array of shape (n_rows,)
    table : DataFrame, optional
        Write its columns too, before the labels; not for .npy files.
    beside : mapping of str to array of shape (n_rows,), optional
        Further columns after the labels, such as their certainty; .npy files hold the labels only.
    escape_formulas : bool
        Write an apostrophe before texts and column names in CSV and TSV files that a spreadsheet program would evaluate
        as a formula (those that begin with =, +, -, @, a tab or a carriage return). By default cells are written
        unchanged, because other programs would read the apostrophe as a part of the text. Numbers are never changed.
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

    written = pd.DataFrame() if table is None else Table.of(table).frame.reset_index(drop=True)
    for name, values in {"cluster": labels, **(beside or {})}.items():
        written[_unused_name(name, list(written.columns))] = pd.Series(values)
    with replacing(path) as temporary:
        if kind == ".parquet":
            written.to_parquet(temporary, index=False)
        elif kind == ".xlsx":
            _write_workbook(temporary, {"rows": written, "clusters": profile})
        else:
            written = _without_formulas(written) if escape_formulas else written
            compression: Any = "gzip" if path.suffix.lower() == ".gz" else None
            written.to_csv(temporary, index=False, sep="\t" if kind == ".tsv" else ",", compression=compression)
    return path


def _without_formulas(frame: Any) -> Any:
    def inert(value: Any) -> Any:
        return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA_STARTS) else value

    texts = [name for name in frame.columns if getattr(frame[name].dtype, "kind", "O") not in "biufmM"]
    changed = frame.assign(**{name: frame[name].astype(object).map(inert) for name in texts})
    return changed.rename(columns=inert)


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
