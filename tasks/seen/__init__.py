"""What workers show of themselves: logs, metrics, traces."""
