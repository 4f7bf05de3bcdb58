"""The commands and queries as Celery tasks, for services that know only a name and JSON; each is a line of the log."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import structlog
from celery import Task
from celery.exceptions import Ignore
from pydantic import BaseModel

from db.commands.execute import FROM_HERE, Origin, execute
from db.connection.transactions import database_now, engine, in_transaction
from db.replicas.secret_requests import UnaskedSecretsError
from db.unreachable import AWAY
from db.views.documents import answer_of
from domain.commands.base import QUERIES
from domain.commands.registry import COMMANDS, parse_command, parse_query
from domain.commands.replica_commands import PushMetric
from domain.text.errors import InvalidInputError, RollwayError, TooLargeError, UnavailableError
from tasks.app import app
from tasks.hosts.secret_checks import check_secrets
from tasks.messaging.credentials import command_keys
from tasks.messaging.flower_notes import plain_fields
from tasks.messaging.signature import SIGNED_FIELDS, payload_of, proven_payload
from tasks.telemetry.tracing import traceparent_of
from tasks.worker.connections import waker

PATIENCE_SECONDS = 5.0
"""The seconds for which a worker tries to reach Postgres for a command; then any worker may try again."""
MAX_RETRIES = 5


def run_command(task: str, payload: object, patience_seconds: float = 0, origin: Origin = FROM_HERE) -> dict[str, Any]:
    """Carry out a command here and now and wake its handler. Raises the refusals of `domain`.

    Returns {"result": what was done, "repeated": whether an earlier request with this id had done it}.
    """
    carry_out = partial(execute, engine(), parse_command(task, payload), patience_seconds)
    references = frozenset[str]()
    while True:
        try:
            result = carry_out(replace(origin, secrets=references))
        except UnaskedSecretsError as unasked:  # each of an apply's deployments may need others
            check_secrets(engine(), unasked.deployment, unasked.references)
            references |= frozenset(unasked.references)
        else:
            waker().after_change(result.statuses)
            return {"result": result.result, "repeated": result.repeated}


def run_query(task: str, payload: object, patience_seconds: float = 0) -> dict[str, Any]:
    """Answer a query without a lock; returns {"result": found}. Raises the refusals of `domain`."""
    query = parse_query(task, payload)
    return {"result": in_transaction(engine(), lambda connection: answer_of(connection, query), patience_seconds)}


def answer_message(task: str, arguments: Mapping[str, object], traceparent: str | None = None) -> dict[str, Any]:
    """Answer the sender: {"ok": true, "result", and "repeated" of a command}, or {"ok": false, "error": {...}}.

    The error is {"code", "message", "detail"}. `arguments`: those of the message, payload alone, or with sender,
    sent_at and signature; in place of a message that did not fit why it did not, by the code of its refusal.
    Raises what Postgres raises while it is away.
    """

    def work() -> dict[str, Any]:
        payload = _believed_payload(task, arguments)
        if task in QUERIES:
            return run_query(task, payload, PATIENCE_SECONDS)
        return run_command(task, payload, PATIENCE_SECONDS, Origin(traceparent_of(traceparent)))

    answer = _answer_of(work)
    log_answer(task, arguments, answer)
    return answer


def _answer_of(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    try:
        return {"ok": True, **work()}
    except RollwayError as refusal:
        return _refused(refusal)


def _refused(refusal: RollwayError) -> dict[str, Any]:
    return {"ok": False, "error": refusal.as_json()}


def _unavailable() -> dict[str, Any]:
    return _refused(
        UnavailableError(
            f"PostgreSQL did not answer for {PATIENCE_SECONDS * (MAX_RETRIES + 1):g} s; send the command again, "
            "and with the same request_id nothing is done twice"
        )
    )


def _believed_payload(task: str, arguments: Mapping[str, object]) -> object:
    """The payload of the message. Without keys every sender that reaches the broker is believed."""
    match dict(arguments):
        case {"too_large": why}:
            raise TooLargeError(str(why), field="message")
        case {"invalid_input": why}:
            raise InvalidInputError(str(why), field="message")
    if set(arguments) not in ({"payload"}, SIGNED_FIELDS):
        right = "payload alone, or payload, sender, sent_at and signature"
        raise InvalidInputError(f"the arguments must be {right}, not {', '.join(arguments) or 'none'}", field="payload")
    keys = command_keys()
    if keys is not None:
        now = in_transaction(engine(), database_now, PATIENCE_SECONDS)
        return proven_payload(task, arguments, keys, now)
    return payload_of(str(arguments["payload"])) if "signature" in arguments else arguments["payload"]


MESSAGES: dict[str, type[BaseModel]] = {**COMMANDS, **QUERIES}


def _register(task: str) -> Task:
    def command(self: Task, /, *arguments: object, **keywords: object) -> dict[str, Any]:
        numbered = {f"argument {number}": value for number, value in enumerate(arguments, start=1)}
        alone = len(arguments) == 1 and not keywords
        message = {"payload": arguments[0]} if alone else {**numbered, **keywords}
        try:
            return answer_message(task, message, traceparent=self.request.get("traceparent"))
        except AWAY as error:
            if self.request.retries == MAX_RETRIES:
                return _unavailable()
            self.retry(exc=error, countdown=0, throw=False)
            raise Ignore from None  # the state of a Retry could be kept over the answer that another worker has given

    command.__doc__ = MESSAGES[task].__doc__
    command.__name__ = task.rpartition(".")[2]
    registered: Task = app.task(name=task, bind=True, ignore_result=False, max_retries=MAX_RETRIES)(command)
    return registered


TASKS = {task: _register(task) for task in MESSAGES}


_log = structlog.get_logger(__name__)


def log_answer(task: str, arguments: Mapping[str, object], answer: Mapping[str, Any]) -> None:
    """A line at level info; at level debug where nothing changed.

    `arguments`: the arguments of the message. `answer`: the answer to it.
    """
    request = plain_fields(arguments.get("payload"), signed="signature" in arguments)
    if "sender" in arguments:
        request["actor"] = str(arguments["sender"])
    result = answer.get("result", {})
    facts: dict[str, object] = {
        "command": task,
        "deployment": request.get("deployment", result.get("deployment")),
        "revision": result.get("revision", request.get("revision")),
        "rollout": result.get("rollout_id"),
        **{name: request.get(name) for name in ("actor", "request_id")},
    }
    if answer["ok"]:
        _log.log(_level(task, answer), "asked", **facts, reason=request.get("reason", ""))
    else:
        _log.info("refused", **facts, code=answer["error"]["code"], reason=answer["error"]["message"])


def _level(task: str, answer: Mapping[str, Any]) -> int:
    """A metric is no change of a deployment, nor is what was so before, nor a question, which has no `repeated`."""
    result: Mapping[str, Any] = answer["result"]
    has_changed = not (answer.get("repeated", True) or result.get("already", False)) and result.get("applied", True)
    return logging.INFO if has_changed and task != PushMetric.task else logging.DEBUG
