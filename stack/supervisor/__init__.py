"""The process that keeps the parts running."""
