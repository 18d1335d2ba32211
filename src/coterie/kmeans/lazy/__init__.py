"""The lazy engine: Lloyd's algorithm without the scores that provably cannot change the result."""

from coterie.kmeans.lazy.engine import Assigner, run

__all__ = ["Assigner", "run"]
