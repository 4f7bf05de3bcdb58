"""The reads of documents that nobody has applied yet: what would change, and what that would lead to."""

import json
from dataclasses import asdict
from typing import Annotated, Any

from psycopg import Connection
from pydantic import Field

from api.people.asking.asked import Asked, Parameters
from api.people.reads.deployments import Document
from api.people.reads.shapes import Shape
from db.commands.apply.ahead import AppliedAhead, applied_ahead
from db.commands.apply.difference import DocumentDifference, differences
from domain.commands.apply import MOST_DOCUMENTS, Apply
from domain.commands.apply import Document as AppliedDocument
from domain.cycle.recording import inputs_json
from domain.foresight.rehearsal.learned import Learned


class ApplyParameters(Parameters):
    """What is applied, as `POST /v1/apply` takes it."""

    documents: tuple[AppliedDocument, ...] = Field(min_length=1, max_length=MOST_DOCUMENTS)
    """Each of one deployment."""
    activate: bool = True
    """false: revisions are only registered."""
    supersede: bool = False
    """Leave rollouts to other revisions that are under way."""


_AHEAD = {
    "deployment": str,
    "from_revision": str,
    "to_revision": str,
    "would": tuple[str, ...],
    "has_health_check": bool,
    "inputs": dict[str, Any],
    "learned": Learned,
}


Ahead = Annotated[Document, Shape((), "whole", _AHEAD)]

Differences = Annotated[Document, Shape((DocumentDifference,), "whole")]


def apply_difference(connection: Connection, asked: Asked[ApplyParameters]) -> Differences:
    """What applying documents would change, values of variables masked."""
    return {"items": [asdict(found) for found in differences(connection, _apply(asked))]}


def apply_ahead(connection: Connection, asked: Asked[ApplyParameters]) -> Ahead:
    """Each deployment as applying its document would leave it: a client makes plans and rehearsals from that."""
    return {"items": [_document(found) for found in applied_ahead(connection, _apply(asked))]}


def _apply(asked: Asked[ApplyParameters]) -> Apply:
    """Raises NotAllowedError and InvalidInputError."""
    for document in asked.parameters.documents:
        asked.token.refuse_others(document.deployment)
    return Apply(request_id="ahead", actor=asked.token.name, **asked.parameters.model_dump())


def _document(found: AppliedAhead) -> Document:
    planned = found.planned
    return {
        "deployment": found.deployment,
        "from_revision": found.from_revision,
        "to_revision": found.to_revision,
        "would": found.would,
        "has_health_check": planned.subject.has_health_check,
        "inputs": json.loads(inputs_json(planned.subject.deployment, planned.now)),
        "learned": asdict(planned.learned),
    }
