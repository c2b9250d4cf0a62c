"""Calls to other hubs: one driver per file."""
