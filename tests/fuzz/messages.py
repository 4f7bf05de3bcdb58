"""Messages as whoever reaches Redis may put them into a queue: each is put aside with its reason, or answered."""

import json
from random import Random
from typing import Any

from tasks.command_tasks import TASKS
from tasks.messaging.envelope import UnfitMessageError, check_message, decoded
from tests.fuzz.hostile import changed
from tests.fuzz.payloads import hostile_payload
from tests.fuzz.world import World, obeyed
from tests.support.workers.envelopes import body_of, envelope


def hostile_message(world: World, dice: Random) -> bytes:
    task, payload = hostile_payload(world, dice)
    body: Any = [[], {"payload": payload}, {}]
    body = changed(body, dice) if dice.random() < 0.4 else body
    message: Any = envelope(headers__task=task, body=body_of(body))
    message = changed(message, dice) if dice.random() < 0.4 else message
    raw = json.dumps(message).encode()
    place = dice.randrange(len(raw))
    match dice.randrange(10):
        case 0:
            return raw[:place]
        case 1:
            return raw[:place] + bytes([dice.randrange(256)]) + raw[place + 1 :]
        case _:
            return raw


def put_message(world: World, dice: Random) -> None:
    """As a worker does it, short of Celery: looked at, and its task called."""
    raw = hostile_message(world, dice)
    message, why = _looked_at(raw)
    assert obeyed(why) == set(), raw
    if message is None:
        assert why, raw
        return
    body: Any = decoded(message["body"])
    arguments, named, _ = body
    with world.unchanged_by_a_refusal() as outcome:
        told = TASKS[message["headers"]["task"]](*arguments, **named)
        outcome.refused = not told["ok"]
    assert json.loads(json.dumps(told)) == told, raw


def _looked_at(raw: bytes) -> tuple[dict[str, Any] | None, str]:
    try:
        return check_message(raw, "commands"), ""
    except UnfitMessageError as error:
        return None, str(error)
