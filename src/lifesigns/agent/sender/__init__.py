"""The sender. Start at `sender.py`, the door; `relay.py` and `relay_loop.py` are the thread that carries everything."""
