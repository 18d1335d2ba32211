"""From affinities to clusters: candidate partitions, their number of clusters, and constraints."""
