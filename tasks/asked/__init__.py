"""Commands and queries, as Celery tasks."""
