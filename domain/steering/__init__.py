"""What people and services may ask of a deployment, and when it is refused."""
