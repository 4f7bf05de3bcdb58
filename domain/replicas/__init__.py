"""Replicas: their hosts, health and end."""
