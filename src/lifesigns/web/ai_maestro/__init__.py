"""The door for those who speak AI Maestro's API: its messages, agents and heartbeats, onto ours."""
