"""What this process keeps of the servers that its environment names."""

from db.connection.transactions import engine
from tasks.task_settings import settings
from tasks.worker import connections


def forget_servers() -> None:
    """Close the engine and the Redis client of this process, also those of a test before: the environment changes."""
    if engine.cache_info().currsize:
        engine().dispose()
    if connections.redis_client.cache_info().currsize:
        connections.redis_client().close()
    for cached in (engine, settings, connections.redis_client, connections.waker):
        cached.cache_clear()
