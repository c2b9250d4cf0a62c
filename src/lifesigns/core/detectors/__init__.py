"""One file per way of being unwell. A detector looks at a belief and says what it found, or nothing."""
