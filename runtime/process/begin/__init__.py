"""The begin of a replica's process: what it becomes, within which limits, and with which environment."""
