"""Compares what a rollout promised with what it did."""
