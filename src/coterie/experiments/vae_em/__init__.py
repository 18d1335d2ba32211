"""Document 004, "Deep Generative Clustering with VAEs and Expectation-Maximization"."""

from coterie.experiments.vae_em.images import fashion, mnist

__all__ = ["fashion", "mnist"]
