"""Clusters that people work with: edited, continued by later fits with the same ids, and checked against new rows."""

from coterie.living.clusterer import LivingClusterer

__all__ = ["LivingClusterer"]
