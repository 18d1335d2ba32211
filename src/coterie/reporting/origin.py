"""Where the rows of a report came from."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Origin:
    """Where the rows came from, for a report on a file: its name, its columns, and the command that was run.

    ``made_from`` are the file's own columns if ``columns`` were made from them (:class:`coterie.tabular.Columns`).
    """

    source: str
    columns: Sequence[str]
    scaled: bool = False
    command: str | None = None
    seconds: float | None = None
    made_from: Sequence[str] = ()
