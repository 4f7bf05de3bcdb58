"""Autoscaling: the rules people set, and what they come to."""
