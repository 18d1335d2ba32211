"""Trained networks: one safetensors file and one card (JSON) each, on two shelves, and the function that loads them.

The networks that come with the package are on one shelf, those that you trained and shipped on the other
(:func:`user_shelf`).
"""

from coterie.checkpoints.store import SHELF, add_shelf, available, card, load, load_arrays, save, user_shelf

__all__ = ["SHELF", "add_shelf", "available", "card", "load", "load_arrays", "save", "user_shelf"]
