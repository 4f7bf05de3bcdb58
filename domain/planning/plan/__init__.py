"""Plans a rollout, cycle by cycle, before it begins."""
