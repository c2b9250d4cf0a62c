"""Channels: ways to tell people, one folder each. They share `adapters/posting.py`: posting to a server."""
