"""The work of a worker for its host: signs of life, logs, secrets."""
