"""The tables and figures of Zimin et al. (2025), "Learning Gaussian Mixture Models via Transformer Measure Flows"."""
