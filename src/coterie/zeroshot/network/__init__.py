"""The network: two passes over rows and pairs, by numpy or torch, and reading a set with it."""
