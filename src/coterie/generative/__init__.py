"""Mixtures of VAEs (Adipoetra and Martin, 2025) and of normalising flows: one generative model per cluster."""
