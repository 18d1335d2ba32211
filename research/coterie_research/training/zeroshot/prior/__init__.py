"""Problems with known clusters, drawn for training: shapes, tables of latent factors, real tables."""
