"""He et al. (2025), "Transformers versus the EM Algorithm in Multi-class Clustering": its figures and their checks."""

from coterie_research.incontext_em.figures import (
    figure1,
    figure2,
    figure3,
    figure4,
    figure5,
    figure6,
    figure7,
    figure8,
    figure9,
)

__all__ = ["figure1", "figure2", "figure3", "figure4", "figure5", "figure6", "figure7", "figure8", "figure9"]
