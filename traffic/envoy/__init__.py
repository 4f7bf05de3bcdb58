"""Envoy: its configuration, and what it counts."""
