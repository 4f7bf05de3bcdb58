"""The secrets of this host."""
