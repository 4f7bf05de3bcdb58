"""Envoy's aggregated discovery over gRPC: its server, and the streams of proxies."""
