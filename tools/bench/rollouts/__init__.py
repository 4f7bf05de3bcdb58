"""Rollouts, measured against what their replicas need."""
