"""Writes what proxies should know, in their own formats."""
