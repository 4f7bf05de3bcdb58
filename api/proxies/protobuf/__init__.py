"""Envoy's own messages, and the table in them."""
