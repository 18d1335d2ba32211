"""Lloyd's algorithm and its variants as transformers with constructed weights, and fast engines for them."""
