"""What is applied: documents of deployments, and the commands that each comes to."""
