"""Executors: carry out orders that are more than a message to the agent's own side."""
