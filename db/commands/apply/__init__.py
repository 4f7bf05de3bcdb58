"""Reads what applying a file needs of the database, and what it would change."""
