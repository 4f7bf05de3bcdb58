"""What a rollout promised and what it did."""
