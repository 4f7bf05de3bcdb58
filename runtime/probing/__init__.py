"""Probes of replicas, and the metrics of replicas."""
