"""The pretrained clusterer that needs no number of clusters: prior, features, network, partitions, training."""
