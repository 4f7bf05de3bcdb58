"""Sending events to subscribers."""
