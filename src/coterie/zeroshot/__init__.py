"""The pretrained clusterer that needs no number of clusters: prior, model, training."""
