"""The resources: each path with its handler, and the description of them all."""
