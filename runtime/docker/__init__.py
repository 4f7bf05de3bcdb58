"""Replicas as containers of a Docker engine."""
