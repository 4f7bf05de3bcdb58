"""The reads for which decisions are made once more: why a deployment waits, what a change will do, what one did."""

import random
from dataclasses import asdict

from psycopg import Connection

from api.people.asked import Asked
from api.people.reads import Document, named, rollout_id
from db.audit.shown import receipt_shown, why_shown
from db.views.foresight import learned_shown
from db.views.planned import activated
from domain.errors import RolloutNotFoundError
from domain.foresight.plan import plan as foresee


def why(connection: Connection, asked: Asked) -> Document:
    """Why a deployment waits, and what of its rollout came otherwise than planned."""
    return asdict(why_shown(connection, asked.deployment))


def plan(connection: Connection, asked: Asked) -> Document:
    """What activating a revision would do, wave by wave."""
    revision = asked.parameters.revision
    found = activated(connection, asked.deployment, revision)
    chance = random.Random(f"{asked.deployment} {revision}").random  # noqa: S311  (the same question, the same answer)
    return foresee(found.subject, found.now, found.learned, chance).as_json()


def learned(connection: Connection, asked: Asked) -> Document:
    """What past replicas teach, in seconds: with it a client makes plans and rehearsals of its own."""
    return asdict(learned_shown(connection, named(connection, asked).id))


def receipt(connection: Connection, asked: Asked) -> Document:
    """The receipt of a rollout, of a deployment that the token is for; it outlives the rollout."""
    found = receipt_shown(connection, rollout_id(asked))
    if not asked.token.sees(found.receipt["deployment"]):
        raise RolloutNotFoundError(f"the token {asked.token.name} sees no rollout {asked.path['rollout']}")
    return asdict(found)


def last_receipt(connection: Connection, asked: Asked) -> Document:
    """The receipt of the last rollout of a deployment."""
    return asdict(receipt_shown(connection, asked.deployment))
