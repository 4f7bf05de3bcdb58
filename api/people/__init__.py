"""What people and other services ask over HTTP."""
