"""Prints status, the log of a rollout, and the reason for a wait."""
