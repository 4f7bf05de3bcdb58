"""Serves proxies: Envoy's streams, the table in other formats, and acknowledgements."""
