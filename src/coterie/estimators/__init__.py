"""scikit-learn estimators, one a file."""

from coterie.estimators.attention_clustering import AttentionClustering
from coterie.estimators.flow_mixture import FlowMixture
from coterie.estimators.in_context_clusterer import InContextClusterer
from coterie.estimators.kmeans import KMeans
from coterie.estimators.kmedoids import KMedoids
from coterie.estimators.persistence import load
from coterie.estimators.robust_kmeans import RobustKMeans
from coterie.estimators.soft_kmeans import SoftKMeans
from coterie.estimators.spherical_kmeans import SphericalKMeans
from coterie.estimators.trimmed_kmeans import TrimmedKMeans
from coterie.estimators.vae_mixture import VAEMixture
from coterie.estimators.zero_shot_clusterer import ZeroShotClusterer

__all__ = [
    "AttentionClustering",
    "FlowMixture",
    "InContextClusterer",
    "KMeans",
    "KMedoids",
    "RobustKMeans",
    "SoftKMeans",
    "SphericalKMeans",
    "TrimmedKMeans",
    "VAEMixture",
    "ZeroShotClusterer",
    "load",
]
