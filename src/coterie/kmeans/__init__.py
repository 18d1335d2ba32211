"""The constructed family: transformers whose weights are Lloyd's algorithm and its relatives."""
