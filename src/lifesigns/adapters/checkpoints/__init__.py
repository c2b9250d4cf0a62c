"""Stores for the contents of checkpoints."""
