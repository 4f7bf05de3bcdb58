"""The resources: each path with what answers it, and the description of them all."""
