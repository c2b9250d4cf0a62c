"""Links: connections from the agent's side to a hub that need their own protocol."""
