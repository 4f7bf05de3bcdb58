"""Plans are made in processes of their own, which end when nobody waits for their plan."""
