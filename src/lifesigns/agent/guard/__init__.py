"""The guard: a breaker round a call. Start at `guard.py`; the machine itself is `core/breaker.py`."""
