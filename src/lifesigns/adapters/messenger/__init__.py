"""Messengers: servers through which agents exchange messages, one driver per file."""
