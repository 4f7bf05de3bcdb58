"""Processes that make plans, each of which ends when nobody waits for its plan."""
