"""Devices: what hosts have, what a replica needs, and which replica owns which."""
