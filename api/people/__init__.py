"""Serves people and other services over HTTP."""
