"""Training of networks: runs, the loop and its states."""
