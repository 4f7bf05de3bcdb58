"""One proxy's stream of changes."""
