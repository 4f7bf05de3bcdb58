"""The start of a replica's process: its account, its limits, and its environment."""
