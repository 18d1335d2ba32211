"""Training of the measure flow: mixtures, targets and runs."""
