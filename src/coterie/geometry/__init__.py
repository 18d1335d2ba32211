"""Nearest neighbours, principal axes, and means and bounds of columns."""
