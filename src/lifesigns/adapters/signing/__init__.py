"""Signers: one driver per file."""
