"""Assembly: the only place where adapters meet the agent's side and the hub."""
