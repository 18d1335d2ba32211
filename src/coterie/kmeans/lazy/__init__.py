"""The lazy engine: Lloyd's algorithm that computes no attention which provably cannot change."""

from coterie.kmeans.lazy.engine import Assigner, run

__all__ = ["Assigner", "run"]
