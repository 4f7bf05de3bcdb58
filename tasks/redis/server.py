"""Whether the Redis that we are connected to is one that Rollway works with."""

import redis
from redis.exceptions import ResponseError

from domain.installation.servers import doubt_about_memory, refuse_old_redis


def doubt_about(client: redis.Redis) -> str | None:
    """A warning about this server, or None. Raises UnfitServerError where it is too old, and RedisError."""
    address = address_of(client)
    try:
        refuse_old_redis(str(client.info("server")["redis_version"]), address)
        return doubt_about_memory(str(client.info("memory")["maxmemory_policy"]), address)
    except (ResponseError, KeyError):  # it does not tell everybody
        return None


def address_of(client: redis.Redis) -> str:
    """host:port/database, for people."""
    known = client.connection_pool.connection_kwargs
    return f"{known.get('host')}:{known.get('port')}/{known.get('db') or 0}"
