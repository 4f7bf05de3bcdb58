"""Shows people status, the film of a rollout, what a wait waits for."""
