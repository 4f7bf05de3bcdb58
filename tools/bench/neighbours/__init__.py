"""What people and rollouts wait for while neighbours take all that they can."""
