"""Adipoetra and Martin (2025), "Deep Generative Clustering with VAEs and Expectation-Maximization"."""

from coterie_research.mixture_of_vaes.defaults import digits
from coterie_research.mixture_of_vaes.from_random import random_start
from coterie_research.mixture_of_vaes.images import fashion, mnist
from coterie_research.mixture_of_vaes.moons import figure1
from coterie_research.mixture_of_vaes.questions import ablations

__all__ = ["ablations", "digits", "fashion", "figure1", "mnist", "random_start"]
