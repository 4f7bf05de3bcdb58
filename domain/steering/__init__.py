"""The wishes that people and services may have of a deployment, and when they are refused."""
