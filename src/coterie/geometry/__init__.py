"""Nearest neighbours and principal axes."""
