"""He et al. (2025), "Transformers versus the EM Algorithm in Multi-class Clustering": its figures and their checks."""

from coterie_research.incontext_em.figures import EXPERIMENTS

globals().update(EXPERIMENTS)
__all__ = list(EXPERIMENTS)
