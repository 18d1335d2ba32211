"""Adipoetra and Martin (2025), "Deep Generative Clustering with VAEs and Expectation-Maximization"."""
