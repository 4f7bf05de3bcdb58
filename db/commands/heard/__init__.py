"""Hears commands although somebody holds the deployment."""
