"""Agents that are reached by messages: pings, inquiries and nudges go out as messages, and answers come back as signals."""
