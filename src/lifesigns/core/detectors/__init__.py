"""One file per way of being unwell. A detector reads a belief and returns what it found, or None."""
