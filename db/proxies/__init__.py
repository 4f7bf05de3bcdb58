"""Reads what proxies should know, and keeps what they acknowledged."""
