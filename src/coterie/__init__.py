"""Clustering by attention.

The public names are imported on first use, so that ``import coterie`` loads neither torch nor numba.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "KMeans": "coterie.estimators",
    "SoftKMeans": "coterie.estimators",
    "SphericalKMeans": "coterie.estimators",
    "TrimmedKMeans": "coterie.estimators",
    "RobustKMeans": "coterie.estimators",
    "KMedoids": "coterie.estimators",
    "AttentionClustering": "coterie.estimators",
    "FlowMixture": "coterie.estimators",
    "InContextClusterer": "coterie.estimators",
    "ZeroShotClusterer": "coterie.estimators",
    "VAEMixture": "coterie.estimators",
    "load": "coterie.estimators",
    "report": "coterie.reporting",
}
_ROOMS = ("plot",)
__all__ = ["__version__", *_HOMES, *_ROOMS]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in _ROOMS:
        return import_module(f"coterie.{name}")
    raise AttributeError(f"module 'coterie' has no attribute {name!r}; it offers {', '.join([*_HOMES, *_ROOMS])}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES, *_ROOMS])
