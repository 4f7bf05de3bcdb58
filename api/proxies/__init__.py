"""Serves proxies: Envoy's streams, the table in other forms, and who has acknowledged what."""
