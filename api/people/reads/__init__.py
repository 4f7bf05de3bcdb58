"""Reads for people, each from one snapshot of Postgres."""
