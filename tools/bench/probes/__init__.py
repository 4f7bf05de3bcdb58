"""Probes of thousands of replicas, measured."""
