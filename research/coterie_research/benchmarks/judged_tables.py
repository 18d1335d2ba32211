"""Tables that networks are judged on, and those of a corpus that are the same and so must stay outside of training.

``python -m coterie_research.benchmarks.judged_tables corpus`` prints the names of such tables of the corpus as JSON,
for the entry ``without`` of a prior (:class:`coterie_research.training.zeroshot.prior.problems.Prior`).
"""

import json
import sys
from collections.abc import Iterator

import numpy as np
import pandas as pd

from coterie.tables.table import Table, read_table
from coterie_research.benchmarks import labelled_sets, tables
from coterie_research.training.zeroshot.prior.real_tables import RealTable, compared, read_corpus, same_tables


def judged() -> Iterator[RealTable]:
    """The columns of the development tables, of ``coterie bench tables`` and of scikit-learn's tables."""
    from sklearn import datasets

    for one in (*labelled_sets.tables(), *labelled_sets.seen()):
        yield _compared(one.name, pd.DataFrame(one.X).add_prefix("x"))
    yield _compared("diabetes", datasets.load_diabetes(as_frame=True, scaled=False).frame)
    yield _compared("linnerud", datasets.load_linnerud(as_frame=True).frame)
    for table in tables.sets():
        if not table.source.startswith("synthetic"):
            yield _compared(table.name, read_table(table.path))


def _compared(name: str, frame: pd.DataFrame) -> RealTable:
    columns = [column.values for column in Table.of(frame).read_columns()]
    nothing = np.zeros((0, 0))
    return RealTable(name, name, nothing, np.zeros(0, dtype=np.int64), 0, 0.0, compared(columns))


def same_as_judged(corpus: str) -> dict[str, list[str]]:
    """Table of the corpus -> tables that networks are judged on which are the same."""
    found: dict[str, list[str]] = {}
    for one, other in sorted(same_tables(read_corpus(corpus), list(judged()))):
        found.setdefault(one, []).append(other)
    return found


if __name__ == "__main__":
    print(json.dumps(same_as_judged(sys.argv[1]), indent=1))
