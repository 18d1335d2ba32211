"""Shipped weights: one safetensors file and one card (JSON) per network, and their one loader."""

from coterie.checkpoints.store import available, card, load, save

__all__ = ["available", "card", "load", "save"]
