"""Replicas: what to run, where, when it is healthy, and how it leaves."""
