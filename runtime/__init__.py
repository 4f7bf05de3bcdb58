"""Replicas: how they are started, found, probed and stopped. Knows no database."""
