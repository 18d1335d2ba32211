"""A clustered table as a picture in a file."""

import os
from pathlib import Path
from typing import Any

from coterie.tabular.clustered_table import ClusteredTable


def save_picture(clustered: ClusteredTable, path: str | os.PathLike, title: str = "", view: Any = "auto") -> Path:
    """Write a PNG or SVG file.

    Columns are shown in the units of the table, principal axes and UMAP as the estimator saw the rows.
    """
    from coterie.plot import save_clusters

    rows, centers, names = clustered.map_rows(view)
    return save_clusters(path, rows, clustered.labels, centers, names, title, view, clustered.names)
