"""Starts, finds, probes and stops replicas. Knows no database."""
