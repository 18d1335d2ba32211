"""What the network reads of a set of rows: features of every row and of every pair of rows."""
