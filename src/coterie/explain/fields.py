"""The columns of the user behind the values of a clustered table, each with its kind and its way of being written."""

import numpy as np

from coterie.plot.frames import Column
from coterie.tables.columns import holds_dates
from coterie.tables.kinds import CYCLE, DATE
from coterie.tabular.clustered_table import ClusteredTable


def fields_of(clustered: ClusteredTable) -> list[Column]:
    """The columns that were clustered, in their order."""
    encoding, values = clustered.encoding, clustered.values
    if encoding is None or len(encoding.value_names) != len(clustered.value_names):
        table, dated = clustered.table, set()
        if table.is_frame:
            dated = {one for one in clustered.value_names if one in table.names and holds_dates(table.frame[one])}
        return [
            Column(name, values[:, place], dates=name in dated, first=place)
            for place, name in enumerate(clustered.value_names)
        ]
    fields: list[Column] = []
    first = 0
    for place, column in enumerate(encoding.columns):
        name, own = column.name or f"x{place}", values[:, first : first + column.width]
        if column.levels is None:
            is_date, cycle = column.kind == DATE, column.cycle * (column.kind == CYCLE)
            fields.append(Column(name, own[:, 0], None, is_date, column.unit, first, cycle))
        else:
            codes = np.where(own.max(axis=1) > 0, own.argmax(axis=1), -1)
            fields.append(Column(name, codes, tuple(column.named_levels), first=first))
        first += column.width
    return fields
