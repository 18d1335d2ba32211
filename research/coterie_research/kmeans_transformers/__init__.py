"""Clarkson et al. (2025): transformers whose weights are Lloyd's algorithm and its relatives."""

from coterie_research.kmeans_transformers.experiments import figure3, figure4, table1
from coterie_research.kmeans_transformers.robust import robust

__all__ = ["figure3", "figure4", "robust", "table1"]
