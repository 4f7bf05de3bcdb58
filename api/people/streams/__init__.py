"""Changes, sent to subscribers as they happen."""
