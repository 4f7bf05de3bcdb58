"""How rollouts of a service have gone, and how the next one may go."""
