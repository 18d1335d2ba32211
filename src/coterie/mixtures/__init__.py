"""Gaussian mixtures: EM, BIC, samplers of the posterior, and the measure flow (Zimin et al., 2025) that starts them."""
