"""What a worker does for its host: signs of life, logs, secrets."""
