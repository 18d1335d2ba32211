"""The mixture of VAEs (document 004), and of normalising flows: one generative model a cluster, trained by EM."""
