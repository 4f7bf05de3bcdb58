"""Replicas that another system starts and stops."""
