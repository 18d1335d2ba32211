"""Learned Lloyd: can its weights be found from random ones, and what is it worth beside what a user would do?"""

from coterie_research.kmeans_transformers.learned_lloyd.equal_seconds import equal_seconds
from coterie_research.kmeans_transformers.learned_lloyd.random_weights import from_random_weights
from coterie_research.kmeans_transformers.learned_lloyd.training import training

__all__ = ["equal_seconds", "from_random_weights", "training"]
