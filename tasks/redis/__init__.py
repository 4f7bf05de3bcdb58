"""Keeps lock slots, wakes, and messages that were put aside in Redis."""
