"""Data: generators of the documents, real tables, readers."""
