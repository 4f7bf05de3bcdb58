"""Reads that decide in advance: the effects of a change or a document, and the offered commands."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any

from psycopg import Connection

from api.people.doors import BUTTONS, Button, button_of
from api.people.plans.workers import AskedPlan
from api.people.reads.deployment_reads import Document, revision_found, view_of
from api.people.reads.read_table import Shape
from api.people.requests import Parameters, ReadRequest
from db.commands.apply.difference import DocumentDifference, differences
from db.commands.apply.preview import AppliedAhead, applied_ahead
from db.commands.apply.settings_undo import settings_to_put_back
from db.commands.dry_run import dry_run
from db.replicas.report_commands import on_host
from db.views.fleet_settings import has_subscriptions
from db.views.planning_views import revision_ahead
from db.views.rollout_records import past_of
from db.views.timeline import RevisionView, revision_shown
from domain.commands.apply.document import Apply, ToApply
from domain.commands.apply.templates import TEMPLATES, Template
from domain.commands.base import Command, DeploymentCommand
from domain.commands.deeds import drained
from domain.commands.fleet_commands import DeleteSubscription, ForgetEvents, ResendEvents
from domain.commands.rollout_commands import Undo
from domain.commands.steering_command import SteeringCommand
from domain.cycle.recording import inputs_json
from domain.installation.tokens import Token
from domain.planning.buttons import Missing, Offer, missing_commands
from domain.planning.buttons import offers as offers_now
from domain.planning.replica_timings import Timings
from domain.planning.rollout_plan import Plan
from domain.steering.command_effect import Context
from domain.steering.gates import Frozen


@dataclass(frozen=True, slots=True)
class MissingButton:
    """A command that is not offered, and why. `way`: another way to give it, in words; `button`: for that way.

    A `button` without a `way` is for a named revision.
    """

    verb: str
    label: str
    group: str
    reason: str
    way: str
    button: Button | None


Offered = Annotated[
    Document, Shape((Button,), "whole", extras={"missing": list[MissingButton], "frozen": Frozen | None})
]


def offered(connection: Connection, request: ReadRequest[Parameters]) -> Offered:
    """The commands that the deployment accepts now from this caller, in the order of buttons; `missing`: others.

    `frozen`: the freeze that keeps rollouts of it from beginning.
    """
    view = view_of(connection, request)
    past, asking = past_of(connection, view), Context("offered", view.now, view.id)
    offers: dict[type[Command], Offer] = {offer.command: offer for offer in offers_now(view.snapshot, past, asking)}
    absent: dict[type[Command], Missing] = {
        each.command: each for each in missing_commands(view.snapshot, past, asking)
    }
    items, missing_buttons = list[Button](), list[MissingButton]()
    for verb, command in BUTTONS.items():
        may = _may(request.token, command)
        if (offer := offers.get(command)) and may:
            items.append(button_of(verb, offer))
        elif offer or command in absent:
            missing_buttons.append(_missing_button(verb, None if offer else absent[command], may=may))
    return {
        "items": list(map(asdict, items)),
        "missing": list(map(asdict, missing_buttons)),
        "frozen": past.frozen and asdict(past.frozen),
    }


def _missing_button(verb: str, absent: Missing | None, *, may: bool) -> MissingButton:
    """A button that is not offered. Where the caller's role is too low, that is the only reason given."""
    command = BUTTONS[verb]
    plain = button_of(verb)
    if absent is None or not may:
        return MissingButton(verb, plain.label, plain.group, f"needs the role {command.role}", "", None)
    button = button_of(verb, absent.offer) if absent.offer else None
    return MissingButton(verb, plain.label, plain.group, absent.reason, absent.way, button)


_OF_SUBSCRIPTIONS = frozenset({DeleteSubscription, ResendEvents, ForgetEvents})


def fleet_offered(
    connection: Connection, request: ReadRequest[Parameters]
) -> Annotated[Document, Shape((Button,), "whole")]:
    """The commands about no deployment or several that the caller may give, and that have something to change."""
    absent = frozenset() if has_subscriptions(connection) else _OF_SUBSCRIPTIONS
    fleet = [
        verb
        for verb, command in BUTTONS.items()
        if not issubclass(command, DeploymentCommand) and command not in absent
    ]
    return {"items": [asdict(button_of(verb)) for verb in fleet if _may(request.token, BUTTONS[verb])]}


def templates(
    _: Connection,
    request: ReadRequest[Parameters],  # noqa: ARG001  (the same for all)
) -> Annotated[Document, Shape((Template,), "whole")]:
    """The templates of a new deployment."""
    return {"items": [asdict(template) for template in TEMPLATES]}


def _may(token: Token, command: type[Command]) -> bool:
    return token.may(command.role) and (token.is_for_all or not command.is_of_fleet)


def questions(connection: Connection, command: Command) -> Sequence[AskedPlan]:
    """Compute each deployment as the command would leave it, to make a plan from it."""
    match command:
        case Apply():
            return [
                AskedPlan(each.planned, each.deployment, each.to_revision, _about(each))
                for each in applied_ahead(connection, command)
            ]
        case Undo() if again := settings_to_put_back(connection, command):
            (outcome,) = applied_ahead(connection, again)
            return [AskedPlan(outcome.planned, outcome.deployment, "", {"would": outcome.would})]
        case SteeringCommand(deployment=name):
            revision = getattr(command, "revision", None) or ""
            return [AskedPlan(dry_run(connection, command), name, revision, {"would": ()})]
    raise TypeError(command)


def _about(outcome: AppliedAhead) -> Document:
    return {"deployment": outcome.deployment, "would": outcome.would, "notes": outcome.notes}


def plan_shape(command: type[Command]) -> Shape:
    """The shape of the answer: a plan, or one for each document that is applied."""
    if issubclass(command, Apply):
        return Shape((Plan,), "whole", {"deployment": str, **dict.fromkeys(("would", "notes"), tuple[str, ...])})
    return Shape((Plan,), more={"would": tuple[str, ...]})


class ApplyParameters(ToApply, Parameters):
    """The documents to apply, as `POST /v1/apply` takes them."""


class ApplyDifferenceParameters(ApplyParameters):
    """The documents, and the form of their differences."""

    values: bool = False
    """Whether plain values of variables are shown where they differ; otherwise they are masked."""


@dataclass(frozen=True, slots=True)
class DrainAhead:
    """The effect of draining a host. `stay`: the deployments that no other host takes; `sentence`: both in words."""

    host: str
    deployments: int
    stay: list[str]
    sentence: str


def drain_ahead(connection: Connection, request: ReadRequest[Parameters]) -> DrainAhead:
    """Show what draining a host would move, and what would stay."""
    host = request.path["host"]
    deployments, stay = on_host(connection, host)
    return DrainAhead(host, deployments, stay, drained({"deployments": deployments, "stay": stay}))


def revision(connection: Connection, request: ReadRequest[Parameters]) -> Annotated[Document, Shape((RevisionView,))]:
    """One, the values of its variables masked; `ahead`: what its replicas would find on hosts."""
    view, name = view_of(connection, request), request.path["revision"]
    revision_view = revision_found(revision_shown(connection, view.id, name), view.name, name)
    return asdict(replace(revision_view, ahead=revision_ahead(connection, view, revision_view)))


_AHEAD = {
    "deployment": str,
    "from_revision": str,
    "to_revision": str,
    "would": tuple[str, ...],
    "notes": tuple[str, ...],
    "has_health_check": bool,
    "inputs": dict[str, Any],
    "learned": Timings,
}


Ahead = Annotated[Document, Shape((), "whole", _AHEAD)]

Differences = Annotated[Document, Shape((DocumentDifference,), "whole")]


def apply_difference(connection: Connection, request: ReadRequest[ApplyDifferenceParameters]) -> Differences:
    """Show what applying documents would change, values of variables masked unless they are asked for."""
    items = differences(connection, _apply(request), with_values=request.parameters.values)
    return {"items": [asdict(each) for each in items]}


def apply_ahead(connection: Connection, request: ReadRequest[ApplyParameters]) -> Ahead:
    """Each deployment as applying its document would leave it: a client makes its plans from that."""
    return {"items": [_document(outcome) for outcome in applied_ahead(connection, _apply(request))]}


def _apply(request: ReadRequest[Any]) -> Apply:
    """Raises NotAllowedError and InvalidInputError."""
    for document in request.parameters.documents:
        request.token.refuse_others(document.deployment)
    return Apply(
        request_id="ahead", actor=request.token.name, **request.parameters.model_dump(include=set(ToApply.model_fields))
    )


def _document(outcome: AppliedAhead) -> Document:
    planned = outcome.planned
    return {
        "deployment": outcome.deployment,
        "from_revision": outcome.from_revision,
        "to_revision": outcome.to_revision,
        "would": outcome.would,
        "notes": outcome.notes,
        "has_health_check": planned.subject.has_health_check,
        "inputs": json.loads(inputs_json(planned.subject.deployment, planned.now)),
        "learned": asdict(planned.timings),
    }
