"""Document 004, "Deep Generative Clustering with VAEs and Expectation-Maximization"."""

from coterie.experiments.vae_em.images import fashion, mnist

ITEMS = ("mnist", "fashion")

__all__ = ["ITEMS", "fashion", "mnist"]
