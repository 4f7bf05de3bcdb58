"""Gives every runtime what it needs of this machine: files, ports, identities of processes."""
