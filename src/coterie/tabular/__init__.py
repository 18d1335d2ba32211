"""Clusterings of tables: one value that holds a table, its points, its estimator and its labels, and its facts.

:func:`cluster_table` makes a :class:`ClusteredTable`; the command line, the studio, the report and pictures read it. A
:class:`TableModel` is the part that is saved and predicts for other tables.
"""

from coterie.tabular.clustered_table import ClusteredTable
from coterie.tabular.clustering import Request, Watcher, cluster_table
from coterie.tabular.encoded_table import EncodedTable
from coterie.tabular.make_estimator import SettingError, make_estimator
from coterie.tabular.model import TableModel
from coterie.tabular.out_of_core import Blocks, ClusteredFiles

__all__ = [
    "Blocks",
    "ClusteredFiles",
    "ClusteredTable",
    "EncodedTable",
    "Request",
    "SettingError",
    "TableModel",
    "Watcher",
    "cluster_table",
    "make_estimator",
]
