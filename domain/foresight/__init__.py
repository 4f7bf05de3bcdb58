"""What will happen, would happen and did happen: the shipped decisions, run on a snapshot in a simulated world."""
