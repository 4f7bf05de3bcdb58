"""Celery: when things run. The coordinator is the one place where I/O and decisions meet."""
