"""Shipped weights: one safetensors file and one card (JSON) per network, and their one loader."""

from coterie.checkpoints.store import SHELF, available, card, load, save

__all__ = ["SHELF", "available", "card", "load", "save"]
