"""The one way to lock and change a deployment, and the statuses that statements name."""
