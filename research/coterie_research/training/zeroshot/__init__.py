"""Training of the network, and the fits that follow it: the choice of the number of clusters, the head."""
