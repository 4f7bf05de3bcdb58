"""What a revision may say: its spec, health check, secrets and address."""
