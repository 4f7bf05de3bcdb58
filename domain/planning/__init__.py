"""Foretells and explains rollouts: the shipped decisions, run on a snapshot in a simulated world."""
