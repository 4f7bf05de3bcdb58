"""The HTTP server of Rollway."""
