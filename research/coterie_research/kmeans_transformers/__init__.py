"""Clarkson et al. (2025): transformers whose weights are Lloyd's algorithm and its relatives."""

from coterie_research.kmeans_transformers import experiments
from coterie_research.kmeans_transformers.experiments import *  # noqa: F403

__all__ = experiments.__all__
