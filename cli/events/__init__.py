"""`rollway events`."""
