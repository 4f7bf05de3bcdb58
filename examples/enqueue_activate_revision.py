"""Ask Rollway to activate a revision and wait until its rollout ended, from a process that has Celery and not Rollway.

    pip install 'celery[redis]'
    REDIS_URL=redis://:password@host:6379/0 python enqueue_activate_revision.py --wait 600 DEPLOYMENT REVISION [REASON]

Where commands must be signed, ROLLWAY_SENDER is the sender's name and ROLLWAY_KEY its key.
Exit codes: 0 accepted, and with --wait completed; 1 refused, or not completed; 2 wrong usage, 3 no answer, 4 it is not
over yet. Prints the answer as JSON, {"ok": true, "result": {...}, "repeated": ...} or {"ok": false, "error": {"code",
"message", "detail"}}, and with --wait one line more: the rollout as it is then.
"""

import argparse
import hmac
import json
import os
import sys
import time
import uuid
from typing import Any

from celery import Celery
from celery.exceptions import TimeoutError as NoAnswerError
from kombu.exceptions import OperationalError
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

ATTEMPTS = 3
PATIENCE_SECONDS = 10.0
POLL_SECONDS = 0.5
Answer = dict[str, Any]
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


def ask(app: Celery, task: str, payload: dict[str, str]) -> Answer | None:
    """The answer, or None when there was none.

    A message may be lost on Redis: it is then sent again, and since its request id stays the same, nothing is done
    twice.
    """
    sender, key = os.environ.get("ROLLWAY_SENDER"), os.environ.get("ROLLWAY_KEY")
    arguments = signed(task, payload, sender, key) if sender and key else {"payload": payload}
    for _ in range(ATTEMPTS):
        sent = app.send_task(task, kwargs=arguments, queue="commands", retry=False)
        try:
            answer = sent.get(timeout=PATIENCE_SECONDS, propagate=False)
        except NoAnswerError:
            continue
        if isinstance(answer, dict):  # an exception otherwise: the worker had no database, say
            return answer
    return None


def activate(app: Celery, deployment: str, revision: str, reason: str) -> Answer | None:
    """A command: its request id is chosen here, once."""
    payload = {
        "deployment": deployment,
        "revision": revision,
        "request_id": str(uuid.uuid4()),
        "actor": "enqueue_activate_revision.py",
        "reason": reason,
    }
    return ask(app, "rollway.activate_revision", payload)


def ended(app: Celery, rollout_id: str, seconds: float) -> Answer | None:
    """The rollout once it ended, or as it is when the time is up. None when nobody answers."""
    ends_at = time.monotonic() + seconds
    while True:
        answer = ask(app, "rollway.get_rollout", {"rollout_id": rollout_id})
        if answer is None or not answer["ok"]:
            return None
        rollout: Answer = answer["result"]
        if rollout["outcome"] or time.monotonic() > ends_at:
            return rollout
        time.sleep(POLL_SECONDS)


def run(app: Celery, given: argparse.Namespace) -> int:
    """Ask, print, wait; the exit code."""
    answer = activate(app, given.deployment, given.revision, given.reason)
    if answer is None:
        print(f"no answer in {ATTEMPTS} attempts: does a worker run with queue 'commands'?", file=sys.stderr)
        return 3
    print(json.dumps(answer))
    if not answer["ok"]:
        return 1
    rollout_id = answer["result"]["rollout_id"]
    if given.wait is None or rollout_id is None:  # without a policy there is no rollout
        return 0
    rollout = ended(app, rollout_id, given.wait)
    if rollout is None:
        print("nobody says how the rollout is", file=sys.stderr)
        return 3
    print(json.dumps(rollout))
    return {"completed": 0, None: 4}.get(rollout["outcome"], 1)


def main() -> int:
    """Parse, connect, run."""
    parser = argparse.ArgumentParser(epilog="REDIS_URL is the broker that Rollway's workers listen to.")
    parser.add_argument("deployment", metavar="DEPLOYMENT")
    parser.add_argument("revision", metavar="REVISION")
    parser.add_argument("reason", metavar="REASON", nargs="?", default="")
    parser.add_argument("--wait", metavar="SECONDS", type=float, help="wait until the rollout ended, so long at most")
    given, url = parser.parse_args(), os.environ.get("REDIS_URL")
    if not url:
        parser.error("REDIS_URL is not set; it is redis://:password@host:6379/0")
    try:
        Redis.from_url(url, socket_connect_timeout=3, retry=Retry(NoBackoff(), 0)).ping()
        return run(connect(url), given)
    except (OperationalError, RedisError, RuntimeError) as error:
        # RuntimeError is how Celery says that it lost its result store
        print(f"REDIS_URL: Redis cannot be reached ({type(error).__name__})", file=sys.stderr)
        return 3


if __name__ == "__main__":
    sys.exit(main())
