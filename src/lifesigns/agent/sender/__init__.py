"""The sender. Start at `sender.py`, the door; `relay.py` and `rounds.py` are the thread that carries everything."""
