"""He et al. (2025), "Transformers versus the EM Algorithm in Multi-class Clustering"."""
