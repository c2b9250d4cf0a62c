"""Adapters: one driver per file, each the answer of one server or library to a protocol in `lifesigns.ports`."""
