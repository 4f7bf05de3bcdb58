"""Ask Rollway to activate a revision, from a process that has Celery and not Rollway.

    pip install celery redis
    REDIS_URL=redis://:password@host:6379/0 python enqueue_activate_revision.py DEPLOYMENT REVISION [REASON]

Where commands must be signed, ROLLWAY_SENDER is the sender's name and ROLLWAY_KEY its key.
Exit codes: 0 accepted, 1 refused, 2 wrong usage, 3 no answer. Prints the answer as JSON: {"ok": true, "result": {...},
"repeated": ...} or {"ok": false, "error": {"code", "message", "detail"}}.
"""

import hmac
import json
import os
import sys
import time
import uuid

from celery import Celery
from celery.exceptions import TimeoutError as NoAnswerError
from kombu.exceptions import OperationalError
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

TASK = "rollway.activate_revision"
ATTEMPTS = 3
PATIENCE_SECONDS = 10.0
PREFIX = {"global_keyprefix": "rollway:"}  # Rollway keeps all its keys under this prefix
TIMEOUTS = {"socket_connect_timeout": 3, "socket_timeout": 10}


def connect(url: str) -> Celery:
    """A producer that speaks to Rollway's workers: JSON, their key prefix, their queue."""
    app = Celery("somebody-else", broker=url, backend=url)
    app.conf.update(
        broker_transport_options={**PREFIX, **TIMEOUTS},
        result_backend_transport_options={**PREFIX, "retry_policy": {"timeout": 3, "max_retries": 1}},
        task_serializer="json",
        result_serializer="json",
        accept_content=["json"],
    )
    return app


def signed(task: str, payload: dict[str, str], sender: str, key: str) -> dict[str, object]:
    """The arguments of a signed command: its payload as text, who sends it, when, and the proof of all this."""
    text, sent_at = json.dumps(payload), int(time.time())
    proof = hmac.new(key.encode(), f"{sender}\n{sent_at}\n{task}\n{text}".encode(), "sha256").hexdigest()
    return {"payload": text, "sender": sender, "sent_at": sent_at, "signature": proof}


def activate(app: Celery, deployment: str, revision: str, reason: str) -> dict[str, object] | None:
    """The answer, or None when there was none.

    A message may be lost on Redis: it is then sent again, and since its request id stays the same, nothing is done
    twice.
    """
    payload = {
        "deployment": deployment,
        "revision": revision,
        "request_id": str(uuid.uuid4()),
        "actor": "enqueue_activate_revision.py",
        "reason": reason,
    }
    sender, key = os.environ.get("ROLLWAY_SENDER"), os.environ.get("ROLLWAY_KEY")
    arguments = signed(TASK, payload, sender, key) if sender and key else {"payload": payload}
    for _ in range(ATTEMPTS):
        sent = app.send_task(TASK, kwargs=arguments, queue="commands", retry=False)
        try:
            answer = sent.get(timeout=PATIENCE_SECONDS, propagate=False)
        except NoAnswerError:
            continue
        if isinstance(answer, dict):  # an exception otherwise: the worker had no database, say
            return answer
    return None


def main() -> int:
    """Parse, ask, print."""
    url = os.environ.get("REDIS_URL")
    if len(sys.argv) not in (3, 4) or not url:
        print("usage: REDIS_URL=redis://... enqueue_activate_revision.py DEPLOYMENT REVISION [REASON]", file=sys.stderr)
        return 2
    try:
        Redis.from_url(url, socket_connect_timeout=3, retry=Retry(NoBackoff(), 0)).ping()
        answer = activate(connect(url), sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else "")  # noqa: PLR2004
    except (OperationalError, RedisError, RuntimeError) as error:
        # RuntimeError is how Celery says that it lost its result store
        print(f"REDIS_URL: Redis cannot be reached ({type(error).__name__})", file=sys.stderr)
        return 3
    if answer is None:
        print(f"no answer in {ATTEMPTS} attempts: does a worker run with queue 'commands'?", file=sys.stderr)
        return 3
    print(json.dumps(answer))
    return 0 if answer["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
