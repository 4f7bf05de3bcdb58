"""The tasks of a worker host: start, probe and stop replicas, signs of life, metrics."""
