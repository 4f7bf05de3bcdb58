"""Probes of replicas, and the metrics that they serve."""
