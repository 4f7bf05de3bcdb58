"""Reads of a request what it asks for and who asks, and bounds how often."""
