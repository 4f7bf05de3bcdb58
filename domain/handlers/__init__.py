"""One handler for each phase of a deployment."""
