"""The terminal: output, exit codes, and interrupts."""
