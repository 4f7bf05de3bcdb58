"""What is heard although somebody holds the deployment."""
