"""What a rollout will do, cycle by cycle, before it begins."""
