"""What every runtime needs of this machine: files, ports, identities of processes."""
