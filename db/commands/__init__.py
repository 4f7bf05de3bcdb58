"""The users' writes: one effect for each command."""
