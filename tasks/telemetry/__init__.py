"""Shows what workers do: logs, metrics, traces."""
