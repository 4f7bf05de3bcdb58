"""The ways of replacing replicas in a rollout: four strategies, and their common parts."""
