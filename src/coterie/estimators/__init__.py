"""scikit-learn estimators, one per file. They are imported on first use, so that k-means does not import torch."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from coterie.catalogue import CATALOGUE

if TYPE_CHECKING:
    from coterie.estimators.attention_clustering import AttentionClustering as AttentionClustering
    from coterie.estimators.flow_mixture import FlowMixture as FlowMixture
    from coterie.estimators.in_context_clusterer import InContextClusterer as InContextClusterer
    from coterie.estimators.kmeans import KMeans as KMeans
    from coterie.estimators.kmedoids import KMedoids as KMedoids
    from coterie.estimators.persistence import load as load
    from coterie.estimators.robust_kmeans import RobustKMeans as RobustKMeans
    from coterie.estimators.soft_kmeans import SoftKMeans as SoftKMeans
    from coterie.estimators.spherical_kmeans import SphericalKMeans as SphericalKMeans
    from coterie.estimators.trimmed_kmeans import TrimmedKMeans as TrimmedKMeans
    from coterie.estimators.vae_mixture import VAEMixture as VAEMixture
    from coterie.estimators.zero_shot_clusterer import ZeroShotClusterer as ZeroShotClusterer

__all__ = [*CATALOGUE, "load"]


if not TYPE_CHECKING:  # a type checker knows the names above, and no others

    def __getattr__(name: str) -> Any:
        if name not in CATALOGUE and name != "load":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module = "persistence" if name == "load" else CATALOGUE[name].module
        return getattr(import_module(f"{__name__}.{module}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
