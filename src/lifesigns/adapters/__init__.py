"""Adapters: one driver per file; each implements a protocol of `lifesigns.ports` for one server or library."""
