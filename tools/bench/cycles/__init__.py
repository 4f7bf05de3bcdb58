"""What cycles cost: one, a storm of them, and none."""
