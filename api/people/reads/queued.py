"""How many messages lie in the queues of subscriptions, as Redis says."""

from dataclasses import replace
from typing import Any

import structlog
from redis.exceptions import RedisError

from api.people.asking.asked import Asked
from db.views.fleet.settings import SubscriptionView
from tasks.settings import KEY_PREFIX
from tasks.worker.connections import redis_client

_log = structlog.get_logger(__name__)


def with_queues(_asked: Asked[Any], found: dict[str, list[SubscriptionView]]) -> dict[str, list[SubscriptionView]]:
    """Each subscription with its queue's length; without it while Redis is away."""
    views = found["items"]
    if not any(view.queue for view in views):
        return found
    try:
        client = redis_client()
        return {"items": [_with_queue(view, client.llen(f"{KEY_PREFIX}{view.queue}")) for view in views]}
    except RedisError as error:
        _log.warning("Redis does not say what lies in queues", error=str(error).partition("\n")[0])
        return found


def _with_queue(view: SubscriptionView, queued: int) -> SubscriptionView:
    return replace(view, queued=queued) if view.queue else view
