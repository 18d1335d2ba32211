"""The measure flow (Zimin et al., 2025): a pretrained transformer that estimates Gaussian mixtures."""
