"""Postgres: the tables, the bulk read, the bulk write, and the commands."""
