"""Asks live proxies what they count, and what is under way."""
