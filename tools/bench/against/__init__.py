"""Pairs of this tree and another commit."""
