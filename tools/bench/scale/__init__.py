"""What large fleets and large deployments cost: how it grows, and what breaks first."""
