"""The reads of rollouts: one, its steps and cycles, its plan and its receipt; and what past ones teach."""

from dataclasses import asdict
from datetime import datetime
from typing import Annotated
from uuid import UUID

from psycopg import Connection

from api.people.asking.asked import Asked, Parameters, StepParameters
from api.people.reads.deployments import Document, named
from api.people.reads.table import Shape
from db.audit.receipts import AgainstPlan, against_plan
from db.audit.shown import ReceiptView, receipt_shown
from db.views.ahead.cycles import Cycle
from db.views.ahead.cycles import cycles as cycles_of_step
from db.views.ahead.foresight import LearnedView, learned_shown
from db.views.evidence import EvidenceView, evidence_shown
from db.views.rollouts import RolloutView, rollout_of_id
from db.views.timeline import StepView, steps_of
from domain.words.errors import InvalidInputError, RolloutNotFoundError

Drawn = Annotated[Document, Shape((Cycle,), "whole", {"step_no": int, "at": datetime, "verdict": str})]


def rollout(connection: Connection, asked: Asked[Parameters]) -> Annotated[Document, Shape((RolloutView,))]:
    """One, of a deployment that the token is for."""
    return asdict(_seen(connection, asked))


def steps(connection: Connection, asked: Asked[StepParameters]) -> Annotated[Document, Shape((StepView,), "whole")]:
    """The steps of a rollout, in order."""
    return {"items": steps_of(connection, _seen(connection, asked).id, asked.parameters.after)}


def cycles(connection: Connection, asked: Asked[StepParameters]) -> Drawn:
    """The steps drawn as pictures, with what each did and why."""
    found = _seen(connection, asked)
    drawn = [
        {"step_no": step.step_no, "at": step.at, "verdict": step.verdict, **asdict(cycle)}
        for step in steps_of(connection, found.id, asked.parameters.after)
        for cycle in cycles_of_step(step)
    ]
    return {"items": drawn}


def rollout_plan(connection: Connection, asked: Asked[Parameters]) -> Annotated[Document, Shape((AgainstPlan,))]:
    """A rollout held against the plan of its beginning."""
    return asdict(against_plan(connection, _seen(connection, asked).id))


def evidence(connection: Connection, asked: Asked[Parameters]) -> Annotated[Document, Shape((EvidenceView,))]:
    """How the evidence of a rollout's judge came to be, a point now and then."""
    return asdict(evidence_shown(connection, _seen(connection, asked)))


def learned(connection: Connection, asked: Asked[Parameters]) -> Annotated[Document, Shape((LearnedView,))]:
    """Show what past replicas teach, in seconds: with it a client makes plans and rehearsals of its own."""
    return asdict(learned_shown(connection, named(connection, asked)))


def receipt(connection: Connection, asked: Asked[Parameters]) -> Annotated[Document, Shape((ReceiptView,))]:
    """The receipt of a rollout, of a deployment that the token is for; it outlives the rollout."""
    found = receipt_shown(connection, rollout_id(asked))
    if not asked.token.sees(found.receipt["deployment"]):
        raise RolloutNotFoundError(f"the token {asked.token.name} sees no rollout {asked.path['rollout']}")
    return asdict(found)


def last_receipt(connection: Connection, asked: Asked[Parameters]) -> Annotated[Document, Shape((ReceiptView,))]:
    """The receipt of the last rollout of a deployment."""
    return asdict(receipt_shown(connection, asked.deployment))


def _seen(connection: Connection, asked: Asked[Parameters]) -> RolloutView:
    found = rollout_of_id(connection, rollout_id(asked))
    if not asked.token.sees(found.deployment):
        raise RolloutNotFoundError(f"the token {asked.token.name} sees no rollout {found.id}")
    return found


def rollout_id(asked: Asked[Parameters]) -> UUID:
    """The one in the path. Raises InvalidInputError."""
    try:
        return UUID(asked.path["rollout"])
    except ValueError:
        raise InvalidInputError("rollout: must be the id of a rollout", field="rollout") from None
