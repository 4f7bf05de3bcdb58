"""The whole fleet in numbers, for Prometheus."""
