"""Training of the in-context clusterer: mixtures, targets and runs."""
