"""Changes, told to whoever listens."""
