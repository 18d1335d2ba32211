"""Adipoetra and Martin (2025), "Deep Generative Clustering with VAEs and Expectation-Maximization"."""

from coterie_research.mixture_of_vaes.defaults import digits, fashion, figure1, mnist
from coterie_research.mixture_of_vaes.described import as_described, as_described_fashion, as_described_moons
from coterie_research.mixture_of_vaes.from_random import random_start
from coterie_research.mixture_of_vaes.questions import ablations

__all__ = [
    "ablations",
    "as_described",
    "as_described_fashion",
    "as_described_moons",
    "digits",
    "fashion",
    "figure1",
    "mnist",
    "random_start",
]
