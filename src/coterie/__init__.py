"""Clustering by attention.

The public names are those in ``__all__``; the modules among them are ``plot``, ``selection``, ``checkpoints`` and
``distributed``. Everything else may change without notice. Names are imported on first use, so that ``import coterie``
loads neither torch nor numba.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from coterie.catalogue import CATALOGUE

if TYPE_CHECKING:
    from coterie import checkpoints as checkpoints
    from coterie import distributed as distributed
    from coterie import plot as plot
    from coterie import selection as selection
    from coterie.estimators import AttentionClustering as AttentionClustering
    from coterie.estimators import FlowMixture as FlowMixture
    from coterie.estimators import InContextClusterer as InContextClusterer
    from coterie.estimators import KMeans as KMeans
    from coterie.estimators import KMedoids as KMedoids
    from coterie.estimators import RobustKMeans as RobustKMeans
    from coterie.estimators import SoftKMeans as SoftKMeans
    from coterie.estimators import SphericalKMeans as SphericalKMeans
    from coterie.estimators import TrimmedKMeans as TrimmedKMeans
    from coterie.estimators import VAEMixture as VAEMixture
    from coterie.estimators import ZeroShotClusterer as ZeroShotClusterer
    from coterie.estimators import load as load
    from coterie.explain.report import report as report
    from coterie.living import LivingClusterer as LivingClusterer
    from coterie.tables.texts import describe_texts as describe_texts
    from coterie.tabular.clustering import cluster_table as cluster_table

__version__ = "0.1.0"

_HOMES = {
    "LivingClusterer": "coterie.living",
    "cluster_table": "coterie.tabular",
    "describe_texts": "coterie.tables.texts",
    "load": "coterie.estimators",
    "report": "coterie.explain.report",
}
_MODULES = ("checkpoints", "distributed", "plot", "selection")
__all__ = ["__version__", *CATALOGUE, *_HOMES, *_MODULES]


if not TYPE_CHECKING:  # a type checker knows the names above, and no others

    def __getattr__(name: str) -> Any:
        if name in CATALOGUE or name in _HOMES:
            return getattr(import_module(_HOMES.get(name, "coterie.estimators")), name)
        if name in _MODULES:
            return import_module(f"coterie.{name}")
        offered = ", ".join([*CATALOGUE, *_HOMES, *_MODULES])
        raise AttributeError(f"module 'coterie' has no attribute {name!r}; it offers {offered}")


def __dir__() -> list[str]:
    return sorted([*globals(), *CATALOGUE, *_HOMES, *_MODULES])
