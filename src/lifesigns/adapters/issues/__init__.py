"""Issue trackers: one driver per file."""
