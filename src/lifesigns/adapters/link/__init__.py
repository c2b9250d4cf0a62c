"""Links: ways from the agent's side to a hub that need a protocol of their own."""
