"""The terminal: what is printed, how a command ends, and what interrupts it."""
