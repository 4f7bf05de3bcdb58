"""The parts of a revision: its spec, health check, secrets and address."""
