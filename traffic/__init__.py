"""Writes what proxies should know, in the forms that they understand."""
