"""The reads for which decisions are made once more: what a change will do, what one did, what is offered."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Annotated

from psycopg import Connection

from api.people.asking.asked import Asked, Parameters
from api.people.reads.deployments import Document, named
from api.people.reads.shapes import Shape
from db.commands.apply.ahead import AppliedAhead, applied_ahead
from db.commands.foretold import foretold, plan_of
from db.views.past import past_of
from domain.commands.apply import Apply
from domain.commands.base import Command, DeploymentCommand, Door
from domain.commands.registry import BUTTONS, Button, button_of
from domain.foresight.offered import offered as offered_now
from domain.foresight.plan.foreseen import Plan
from domain.installation.tokens import Token
from domain.steering.steered import Asking


def offered(connection: Connection, asked: Asked[Parameters]) -> Annotated[Document, Shape((Button,), "whole")]:
    """The commands that would be taken now of who asks, in the order of buttons."""
    view = named(connection, asked)
    return _buttons(asked, offered_now(view.snapshot, past_of(connection, view), Asking("offered", view.now, view.id)))


def fleet_offered(_: Connection, asked: Asked[Parameters]) -> Annotated[Document, Shape((Button,), "whole")]:
    """The commands about no deployment or several that who asks may give."""
    fleet = [verb for verb, command in BUTTONS.items() if not issubclass(command, DeploymentCommand)]
    return _buttons(asked, fleet)


def _buttons(asked: Asked[Parameters], verbs: Iterable[str]) -> Document:
    return {"items": [asdict(button_of(verb)) for verb in verbs if _may(asked.token, BUTTONS[verb].door)]}


def _may(token: Token, door: Door) -> bool:
    return token.may(door.role) and (token.is_for_all or not door.is_of_fleet)


def foretell(connection: Connection, command: Command) -> Sequence[AppliedAhead]:
    """What a plan of the command is made from: what it would leave of each deployment that it is about."""
    match command:
        case Apply():
            return applied_ahead(connection, command)
        case DeploymentCommand(deployment=name):
            return [AppliedAhead(name, "", getattr(command, "revision", None) or "", (), foretold(connection, command))]
    raise TypeError(command)


def plan_shape(command: type[Command]) -> Shape:
    """The shape of the answer: a plan, or one for each document that is applied."""
    if issubclass(command, Apply):
        return Shape((Plan,), "whole", {"deployment": str, "would": tuple[str, ...]})
    return Shape((Plan,))


def as_planned(command: Command, found: Sequence[AppliedAhead]) -> Document:
    """Make the plans, which may take seconds."""
    plans = [plan_of(each.planned, each.deployment, each.to_revision).as_json() for each in found]
    if not isinstance(command, Apply):
        return plans[0]
    about = [{"deployment": each.deployment, "would": each.would} for each in found]
    return {"items": [{**said, **plan} for said, plan in zip(about, plans, strict=True)]}
