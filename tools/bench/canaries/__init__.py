"""Canaries, discovery and drains, measured behind a real Envoy."""
