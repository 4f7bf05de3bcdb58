"""The folder of a stack: its files, ports, settings and state."""
