"""What the command line, the page and the event streams cost."""
