"""Clarkson et al. (2025): transformers whose weights are Lloyd's algorithm and its relatives."""
