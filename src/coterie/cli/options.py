"""The options and arguments that commands share."""

from functools import partial
from typing import Any

import typer

FILES, BLOCKS = "Output files", "Parquet files that do not fit in memory"


def option(about: str, metavar: str | None = None, *names: str, panel: str | None = None, **more: Any) -> Any:
    return typer.Option(None, *names, metavar=metavar, help=about, rich_help_panel=panel, show_default=False, **more)


def flag(about: str, *names: str, panel: str | None = None) -> Any:
    return typer.Option(False, *names, help=about, rich_help_panel=panel)


to_file, tuning = partial(option, panel=FILES), partial(option, panel="Fine tuning")
for_blocks = partial(option, panel=BLOCKS)

FILE = typer.Argument(
    metavar="FILE",
    help="A table with one point per row: .csv, .tsv, .json, .jsonl, .parquet, .feather, .npy, .xlsx, .dta, .sav, "
    ".sqlite, .duckdb, the URL of a database, or - for standard input.",
)
MODEL = typer.Argument(metavar="MODEL", help="A file that `coterie cluster --save MODEL` wrote.")
KIND = option("Override guessed column kinds, for example year=category,no=id.", "A=KIND")
KEEP = option("Use these columns even if they seem to be identifiers.", "A,B")
HEADER = option("Whether line 1 contains column names.", None, "--header/--no-header")
SKIP = typer.Option(0, metavar="N", min=0, help="Lines of a text file before its table.", show_default=False)
QUERY = option("The query of a database, or the sheet of an Excel workbook.", "SQL")
OUTPUT = to_file("Cluster and certainty of every row: .csv, .tsv, .parquet, .xlsx or .npy.", "FILE", "--output", "-o")
WITH_DATA = flag("Write the columns of the table to --output too.", "--with-data", panel=FILES)
ESCAPE = flag("Write ' before texts that a spreadsheet would run.", "--escape-formulas", panel=FILES)
JSON = flag("Print one JSON document and nothing else.", "--json", panel=FILES)
