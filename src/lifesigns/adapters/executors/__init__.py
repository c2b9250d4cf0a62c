"""Executors: ways to carry out what is more than a message to the agent's own side."""
