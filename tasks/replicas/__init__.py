"""The work of workers for replicas: start, probe and stop them, show signs of life, read metrics."""
