"""What a worker tells of a command, to `celery inspect` and to logs: never a value of a variable."""

import json
from typing import Any

import pytest
from celery import Celery
from kombu.connection import Connection
from kombu.transport.virtual import Message

from tasks.messaging.envelope import check_message, refusal
from tasks.worker.task_events import ShownRequest
from tests.support.workers.envelopes import body_of, raw
from tests.support.workers.secrets import VALUE

READER = Celery("reader", set_as_current=False)
CHANNEL = Connection("memory://").channel()  # type: ignore[no-untyped-call]
REVISION = {"deployment": "web", "spec": {"env": {"DB": VALUE}}}


@pytest.mark.parametrize(
    "body",
    [
        [[], {"payload": REVISION}, {}],
        [[REVISION], {}, {}],
        [[], {"payload": json.dumps(REVISION), "sender": "ci", "signature": "0"}, {}],
        [[], {"payload": json.dumps(REVISION)[:-1], "signature": "0"}, {}],
        [[], {"payload": {**REVISION, "spec": json.dumps(REVISION)}}, {}],
    ],
    ids=["named", "positional", "signed", "no JSON", "a spec as a text"],
)
def test_a_command_is_told_of_without_values_whatever_its_sender_shows(body: Any) -> None:
    message = raw(body=body_of(body), headers__task="rollway.add_revision", headers__kwargsrepr=VALUE)
    made = check_message(message, "commands")
    taken = Message(made, channel=CHANNEL)  # type: ignore[no-untyped-call]
    request = ShownRequest(
        taken, app=READER, task=READER.tasks["celery.map"], headers=taken.headers, body=taken.body, decoded=False
    )
    told = (request.info(), request.info(safe=False), repr(request), made["headers"])
    assert VALUE not in str(told)


def test_a_command_whose_body_does_not_fit_is_told_of_without_what_its_sender_shows() -> None:
    assert VALUE not in str(refusal(raw(body="AAAA", headers__argsrepr=VALUE), "commands", "why"))
