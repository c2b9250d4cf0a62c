"""Chaos with several hubs: real processes, each hub on a machine of its own, and everything between them cut, frozen and killed."""
