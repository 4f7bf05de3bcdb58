"""The machine for every runtime: files, ports, identities of processes."""
