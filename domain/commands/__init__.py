"""What people and other services may ask for: a payload for each command and each query."""
