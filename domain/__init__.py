"""Decisions. Pure: a frozen snapshot and `now` go in, a decision comes out."""
