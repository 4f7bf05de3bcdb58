"""How a rollout replaces its replicas: four strategies, and what they share."""
