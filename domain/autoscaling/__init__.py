"""Autoscaling: the rules that people set, and their decisions."""
