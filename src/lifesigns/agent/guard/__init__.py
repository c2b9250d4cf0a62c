"""The guard: a breaker around a call. Start at `guard.py`; the machine itself is `core/breaker.py`."""
