"""Memories: where workers leave what others look up by key."""
