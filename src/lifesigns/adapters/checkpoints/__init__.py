"""Where the contents of checkpoints lie."""
