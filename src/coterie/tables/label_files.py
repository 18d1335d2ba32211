"""Labels of rows, written to CSV, TSV, Parquet, Excel and NPY files."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from coterie.files import check_writable, replacing
from coterie.tables.columns import TableError
from coterie.tables.databases import require_package
from coterie.tables.file_reading import FILE_TYPES, file_type
from coterie.tables.table import Table
from coterie.wording import shown

# The beginning of a cell that a spreadsheet program evaluates. A number with a sign is none.
FORMULA = re.compile(r"[=@\t\r]|[-+](?!(inf|[\d.,]*(e[-+]?\d+)?%?)\Z)", re.IGNORECASE)
WRITTEN = (".csv", ".tsv", ".parquet", ".xlsx", ".npy")
MOST_EXCEL_ROWS, MOST_EXCEL_COLUMNS, MOST_EXCEL_LETTERS = 1_048_575, 16_381, 32_767
CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]")


def write_labels(
    path: str | os.PathLike,
    labels: Any,
    table: Any = None,
    beside: Mapping[str, Any] | None = None,
    *,
    profile: Any = (),
    escape_formulas: bool = False,
) -> Path:
    """Write one label per row, in the order of the rows, to a column ``cluster``. The file is complete or not there.

    The columns of ``table`` (DataFrame or Table) come before the labels, and those of ``beside``, such as the
    certainty, behind them; .npy files hold the labels only. The cells of a table that was read with ``cells=True`` are
    written as they were: to CSV and TSV files as their texts, to others as values. ``profile`` (DataFrame or list of
    dict) has one row per cluster, for a second sheet of an Excel workbook.

    With ``escape_formulas``, an apostrophe stands before texts and column names that a spreadsheet program would
    evaluate: those that begin with =, +, -, @, a tab or a carriage return. Numbers are never changed. By default all
    cells are unchanged, because other programs would read the apostrophe as a part of the text. Texts of Excel files
    are texts in any case.
    """
    path = check_labels_path(path, with_data=table is not None)
    kind = file_type(path)
    if kind == ".npy":
        with replacing(path) as temporary, open(temporary, "wb") as file:
            np.save(file, labels)
        return path
    import pandas as pd

    as_text = kind in (".csv", ".tsv")
    written = pd.DataFrame() if table is None else Table.of(table).cells(as_text=as_text).copy(deep=False)
    for name, values in {"cluster": labels, **(beside or {})}.items():
        taken = [name, *(f"{name}_{number}" for number in range(2, written.shape[1] + 2))]
        written[next(one for one in taken if one not in written.columns)] = pd.Series(values)
    inert = _without_formulas if escape_formulas else lambda frame: frame
    with replacing(path) as temporary:
        if kind == ".parquet":
            _of_one_type(written).to_parquet(temporary, index=False)
        elif kind == ".xlsx":
            sheets = {"rows": written, **({"clusters": pd.DataFrame(profile)} if len(profile) else {})}
            _write_workbook(temporary, {name: inert(frame) for name, frame in sheets.items()})
        else:
            written = inert(written)
            compression: Any = "gzip" if path.suffix.lower() == ".gz" else None
            written.to_csv(temporary, index=False, sep="\t" if kind == ".tsv" else ",", compression=compression)
    return path


def _of_one_type(frame: Any) -> Any:
    """With texts in columns of a worksheet that hold values of several types, which Parquet does not have."""
    import pandas as pd

    mixed = [
        name
        for name in frame.columns
        if frame[name].dtype == object
        and pd.api.types.infer_dtype(frame[name], skipna=True) in ("mixed", "mixed-integer")
    ]
    return frame.assign(**{name: frame[name].map(str, na_action="ignore") for name in mixed})


def _without_formulas(frame: Any) -> Any:
    def inert(value: Any) -> Any:
        return f"'{value}" if isinstance(value, str) and FORMULA.match(value) else value

    texts = [name for name in frame.columns if getattr(frame[name].dtype, "kind", "O") not in "biufmM"]
    changed = frame.assign(**{name: frame[name].astype(object).map(inert) for name in texts})
    return changed.rename(columns=inert)


def check_labels_path(path: str | os.PathLike, *, with_data: bool = False) -> Path:
    """Raise an error if labels could not be written there, before any work is done."""
    path = Path(path)
    kind = file_type(path) if path.suffix.lower() in (*FILE_TYPES, ".gz", ".pq") else path.suffix.lower()
    if kind not in WRITTEN:
        what = f"labels are not written as {kind}" if kind else "the file name has no extension"
        raise TableError(f"{path}: {what}. Choose a name with {', '.join(WRITTEN)}.")
    if kind == ".npy" and with_data:
        raise TableError(f"{path} can hold labels only: to write them with the data, use .csv, .tsv or .parquet.")
    if kind == ".xlsx":
        require_package("openpyxl", "Writing an Excel workbook", "excel")
    return check_writable(path)


def _write_workbook(path: Path, sheets: dict[str, Any]) -> None:
    import pandas as pd

    with open(path, "wb") as file, pd.ExcelWriter(file, engine="openpyxl") as writer:
        for name, frame in sheets.items():
            require_workbook(frame)
            frame = _as_excel_holds_it(frame)
            zoned = frame.select_dtypes("datetimetz").columns  # Excel has no time zones
            frame.assign(**{one: frame[one].dt.tz_convert(None) for one in zoned}).to_excel(
                writer, sheet_name=name, index=False
            )
            for cell in (cell for row in writer.sheets[name].iter_rows() for cell in row):
                if cell.data_type in "fe":  # openpyxl takes "=1+1" for a formula and "#N/A" for an error
                    cell.data_type = "s"


def require_workbook(frame: Any) -> None:
    """Raise an error if a sheet of Excel cannot hold a frame with three columns of labels."""
    instead = "write .csv or .parquet instead."
    if len(frame) > MOST_EXCEL_ROWS or frame.shape[1] > MOST_EXCEL_COLUMNS:
        raise TableError(
            f"An Excel sheet has at most {MOST_EXCEL_ROWS:,} rows and {MOST_EXCEL_COLUMNS:,} columns of data: {instead}"
        )
    for name in frame.columns:
        texts = frame[name] if getattr(frame[name].dtype, "kind", "O") not in "biufmM" else ()
        for text in (name, *texts):
            if isinstance(text, str) and (len(text) > MOST_EXCEL_LETTERS or CONTROL.search(text)):
                what = f"texts of more than {MOST_EXCEL_LETTERS:,} letters or with control characters"
                raise TableError(f"The column {shown(name[:80])!r} has {what}, which Excel does not hold: {instead}")


def _as_excel_holds_it(frame: Any) -> Any:
    """Numbers of Excel are floats: larger integers, such as identifiers, are written as texts."""
    import pandas as pd

    changed = {}
    for name in frame.columns:
        column, kind = frame[name], frame[name].dtype
        if str(kind).startswith("decimal"):
            changed[name] = column.astype("float64")
        elif pd.api.types.is_integer_dtype(kind) and ((column > 2**53) | (column < -(2**53))).any():
            changed[name] = column.astype("string")
    return frame.assign(**changed)
