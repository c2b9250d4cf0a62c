"""The agent's side: what runs inside or beside an agent. It speaks, it listens to orders, it never disturbs its host."""
