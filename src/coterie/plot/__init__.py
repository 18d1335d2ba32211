"""Pictures of clusterings: plotly figures for web pages, PNG and SVG files for print.

``clusters``, ``profile``, ``distributions``, ``dendrogram``, ``flows``, ``trajectory`` and ``attention`` return plotly
figures; ``save_clusters`` and ``save_comparison`` write PNG or SVG files with matplotlib. Each library is imported on
first use.
"""

from importlib import import_module
from typing import Any

from coterie.palette import MARKERS, OUTLIER, PALETTE

_HOMES = {
    "clusters": "maps",
    "profile": "profiles",
    "distributions": "profiles",
    "dendrogram": "relations",
    "flows": "relations",
    "trajectory": "layers",
    "attention": "layers",
    "objective": "layers",
    "Layers": "layers",
    "silhouette": "quality",
    "memberships": "quality",
    "candidates": "quality",
    "Panel": "png",
    "save_clusters": "png",
    "save_comparison": "png",
    "save_granularity": "png",
}
__all__ = ["MARKERS", "OUTLIER", "PALETTE", *_HOMES]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"coterie.plot.{_HOMES[name]}"), name)
    raise AttributeError(f"coterie.plot has no {name!r}; it offers {', '.join(_HOMES)}")
