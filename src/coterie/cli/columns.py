"""``coterie columns``: what a table holds, and how it would be clustered."""

import json
from typing import Any

from coterie.cli.application import user_errors
from coterie.wording import shown as printable


def run(file: str, how: dict[str, Any], kinds: str | None, keep: str | None, as_json: bool) -> None:
    """Print the kind of every column."""
    from coterie.cli.in_memory import shown_source
    from coterie.tables.columns import described
    from coterie.tables.table import Table

    with user_errors():
        table = Table.read(file, **how)
        read = table.read_columns(kinds=kinds, keep=keep or ())
    rows, file = [described(column) for column in read], shown_source(file)
    if as_json:
        document = {"file": file, "rows": len(table), "columns": rows, "notes": list(table.notes)}
        print(json.dumps(document, allow_nan=False))
        return
    _show(file, len(table), rows, table.notes)


def _show(file: str, rows: int, described: list[dict[str, Any]], notes: tuple[str, ...]) -> None:
    import sys

    from rich.console import Console
    from rich.table import Table

    from coterie.cli.console import escape

    console = Console(width=None if sys.stdout.isatty() else 120)
    for note in notes:
        print("note:", printable(note), file=sys.stderr)
    used = sum(one["used"] for one in described)
    console.print(
        f"[bold]{escape(file)}[/]: {rows:,} rows, {used} of {len(described)} columns are used", highlight=False
    )
    shown = Table("column", "kind", "values", "missing", "why", show_edge=False, pad_edge=False)
    for one in described:
        style = None if one["used"] else "dim"
        kind = one["kind"] if one["used"] else f"{one['kind']} (ignored)"
        missing = f"{one['missing']:,}" if one["missing"] else ""
        shown.add_row(escape(one["name"]), kind, escape(one["values"]), missing, escape(one["why"]), style=style)
    console.print(shown)
    console.print("Correct kinds with --kind COLUMN=KIND, and use ignored columns with --keep COLUMN.", highlight=False)
