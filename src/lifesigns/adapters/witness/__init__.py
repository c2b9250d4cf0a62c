"""Witnesses of the audit log: one driver per file."""
