"""Certificates: which are wanted, whose turn it is, and orders under way."""
