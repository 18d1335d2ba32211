"""Labels that a column of a table gives for some rows, and names of clusters."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from coterie.tables.numbers_and_dates import is_missing
from coterie.tables.table import Table
from coterie.tabular.make_estimator import SettingError

UNKNOWN = ("-1", "-1.0", "unknown")


class KnownLabels(NamedTuple):
    """The label of every row, -1 where it is unknown, and the names of the labels."""

    y: np.ndarray
    names: dict[int, str]

    @classmethod
    def of(cls, table: Table, column: str) -> "KnownLabels":
        """Read a column of labels, which are numbered by their size.

        Missing values (empty cells, "NA", "?" and the like), "unknown" and -1 are unknown.
        """
        (column,) = table.choose([column])
        values = table.frame[column]
        missing = values.isna().to_numpy()
        given = zip(values.tolist(), missing)
        texts = ["" if gone else f"{one:.15g}" if isinstance(one, float) else str(one).strip() for one, gone in given]
        known = [None if is_missing(text) or text.casefold() in UNKNOWN else text for text in texts]
        kinds = sorted({text for text in known if text is not None}, key=lambda text: (-known.count(text), text))
        if not kinds:
            raise SettingError(f"The column {column!r} gives no label: every cell is empty.")
        if len(kinds) > 100:
            raise SettingError(
                f"The column {column!r} has {len(kinds):,} different labels, more than 100: is it the right column?"
            )
        number = {text: place for place, text in enumerate(kinds)}
        y = np.array([-1 if text is None else number[text] for text in known])
        return cls(y, {place: text for text, place in number.items()})

    @property
    def complete(self) -> bool:
        return bool((self.y >= 0).all())


def without(table: Table, column: str) -> Table:
    """The table without a column."""
    (column,) = table.choose([column])
    return Table.of(table.frame.drop(columns=column))


def cluster_names(text: str) -> dict[int, str]:
    """Names of clusters in a text: ``regular,guest`` in the order of the clusters, or ``0=regular,3=guest``."""
    names: dict[int, str] = {}
    for place, part in enumerate(piece.strip() for piece in text.split(",")):
        number, sign, name = part.partition("=")
        if sign and not number.strip().isdigit():
            raise SettingError(f"--names {text}: {number.strip()!r} is not the number of a cluster: write 0=A,1=B.")
        names[int(number) if sign else place] = (name if sign else part).strip()
    return {label: name for label, name in names.items() if name}


def checked_names(names: Mapping[int, str], labels: Sequence[int]) -> dict[int, str]:
    """Names of clusters that exist, each once."""
    unknown = sorted(set(names) - set(labels))
    if unknown:
        raise SettingError(f"There is no cluster {unknown[0]} to name: the clusters are 0 to {max(labels)}.")
    repeated = [name for name in names.values() if list(names.values()).count(name) > 1]
    if repeated:
        raise SettingError(f"Two clusters are named {repeated[0]!r}: give each cluster a name of its own.")
    return dict(sorted(names.items()))
