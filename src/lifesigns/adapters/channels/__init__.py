"""Channels: ways to tell people, one folder each. What they share is `posting.py`: how to post to somebody's server."""
