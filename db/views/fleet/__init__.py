"""Reads about the whole fleet: hosts, windows, entrances, subscriptions."""
