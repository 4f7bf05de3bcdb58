"""The requests of people and other services: a payload for each command and each query."""
