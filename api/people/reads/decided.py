"""The reads for which decisions are made once more: what a change will do, what one did, what is offered."""

from dataclasses import asdict
from typing import Annotated

from psycopg import Connection

from api.people.asking.asked import Asked
from api.people.reads.deployments import Document, named, rollout_id
from api.people.reads.shapes import Shape
from db.audit.shown import ReceiptView, receipt_shown
from db.commands.foretold import foretold, plan_of
from db.views.ahead.foresight import LearnedView, learned_shown
from db.views.past import past_of
from domain.commands.base import DeploymentCommand
from domain.commands.messages import parse_command
from domain.commands.registry import PLANNED, Button, button_of
from domain.foresight.plan.foreseen import Plan
from domain.steering.offered import offered as offered_now
from domain.steering.steered import Asking
from domain.words.errors import RolloutNotFoundError


def offered(connection: Connection, asked: Asked) -> Annotated[Document, Shape((Button,), "whole")]:
    """Which commands would be taken now of who asks, in the order of buttons."""
    view = named(connection, asked)
    verbs = offered_now(view.snapshot, past_of(connection, view), Asking("offered", view.now, view.id))
    return {"items": [asdict(button_of(verb)) for verb in verbs if asked.token.may(PLANNED[verb].door.role)]}


def plan(connection: Connection, asked: Asked) -> Annotated[Document, Shape((Plan,))]:
    """What a command would do, wave by wave."""
    given = asked.parameters.model_dump(exclude_none=True)
    task = PLANNED[given.pop("command")].task
    payload = {**given, "deployment": asked.deployment, "actor": asked.token.name, "request_id": "in a plan"}
    command = parse_command(task, payload)
    if not isinstance(command, DeploymentCommand):
        raise TypeError(command)
    return {"found": foretold(connection, command), "command": command}


def as_planned(_: Asked, found: Document) -> Document:
    """Make the plan, which may take seconds."""
    return plan_of(**found).as_json()


def learned(connection: Connection, asked: Asked) -> Annotated[Document, Shape((LearnedView,))]:
    """What past replicas teach, in seconds: with it a client makes plans and rehearsals of its own."""
    return asdict(learned_shown(connection, named(connection, asked)))


def receipt(connection: Connection, asked: Asked) -> Annotated[Document, Shape((ReceiptView,))]:
    """The receipt of a rollout, of a deployment that the token is for; it outlives the rollout."""
    found = receipt_shown(connection, rollout_id(asked))
    if not asked.token.sees(found.receipt["deployment"]):
        raise RolloutNotFoundError(f"the token {asked.token.name} sees no rollout {asked.path['rollout']}")
    return asdict(found)


def last_receipt(connection: Connection, asked: Asked) -> Annotated[Document, Shape((ReceiptView,))]:
    """The receipt of the last rollout of a deployment."""
    return asdict(receipt_shown(connection, asked.deployment))
