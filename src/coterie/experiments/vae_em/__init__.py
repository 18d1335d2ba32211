"""Adipoetra and Martin (2025), "Deep Generative Clustering with VAEs and Expectation-Maximization"."""

from coterie.experiments.vae_em.defaults import digits
from coterie.experiments.vae_em.from_random import random_start
from coterie.experiments.vae_em.images import fashion, mnist
from coterie.experiments.vae_em.moons import figure1
from coterie.experiments.vae_em.questions import ablations

__all__ = ["ablations", "digits", "fashion", "figure1", "mnist", "random_start"]
