"""The reads: what each resource shows, from one snapshot of Postgres, in the shapes that `--json` has."""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from psycopg import Connection

from api.people.asking.asked import Asked
from api.people.reads.shapes import Shape
from db.audit.receipts import AgainstPlan, against_plan
from db.proxies.table import read_traffic
from db.views.ahead.cycles import Cycle
from db.views.ahead.cycles import cycles as cycles_of_step
from db.views.deployments import DeploymentView, deployment_named
from db.views.documents import deployment_document, deployment_summary, rollout_document
from db.views.fleet.entrances import ReachedView
from db.views.pages import Page, deployments_page, history_page, rollouts_page
from db.views.progress import Progress, progress_of
from db.views.rollouts import RolloutView
from db.views.routes import RouteView, all_routes, last_failed_route
from db.views.timeline import HistoryView, RevisionView, StepView, steps_of
from domain.cycle.standing import Tone
from domain.words.errors import InvalidInputError, RolloutNotFoundError
from traffic.table import TrafficTable, derive_table

Document = dict[str, Any]

_SUMMARY: Mapping[str, object] = {
    **dict.fromkeys(("state", "word", "said", "picture", "overdue"), str),
    "tone": Tone,
    "waits_for": Literal["", "resume", "promote", "abort"],
}

Listed = Annotated[Document, Shape((DeploymentView,), "page", _SUMMARY)]

Detailed = Annotated[Document, Shape((DeploymentView, ReachedView), more={**_SUMMARY, "revisions": list[RevisionView]})]

Drawn = Annotated[Document, Shape((Cycle,), "whole", {"step_no": int, "at": datetime, "verdict": str})]

Replicas = Annotated[Document, Shape((RouteView,), "whole", beside={"last_failed": RouteView | None})]


def deployments(connection: Connection, asked: Asked) -> Listed:
    """The deployments that the token is for."""
    names = None if asked.token.is_for_all else asked.token.deployments
    wanted = asked.parameters
    page = deployments_page(connection, names, wanted.cursor, wanted.limit, wanted.prefix)
    return {"items": [deployment_summary(view) for view in page.items], "next": page.next}


def deployment(connection: Connection, asked: Asked) -> Detailed:
    """One, with where it is reached and its newest revisions."""
    return deployment_document(connection, asked.deployment)


def rollouts(connection: Connection, asked: Asked) -> Annotated[Document, Shape((RolloutView,), "page")]:
    """The rollouts of a deployment."""
    view = named(connection, asked)
    return page_of(rollouts_page(connection, view.id, asked.parameters.cursor, asked.parameters.limit))


def rollout(connection: Connection, asked: Asked) -> Annotated[Document, Shape((RolloutView,))]:
    """One, of a deployment that the token is for."""
    found = rollout_document(connection, rollout_id(asked))
    if not asked.token.sees(found["deployment"]):
        raise RolloutNotFoundError(f"the token {asked.token.name} sees no rollout {found['id']}")
    return found


def steps(connection: Connection, asked: Asked) -> Annotated[Document, Shape((StepView,), "whole")]:
    """The steps of a rollout, in order."""
    found = rollout(connection, asked)
    return {"items": steps_of(connection, found["id"], asked.parameters.after)}


def cycles(connection: Connection, asked: Asked) -> Drawn:
    """The steps drawn as pictures, with what each did and why."""
    found = rollout(connection, asked)
    drawn = [
        {"step_no": step.step_no, "at": step.at, "verdict": step.verdict, **asdict(cycle)}
        for step in steps_of(connection, found["id"], asked.parameters.after)
        for cycle in cycles_of_step(step)
    ]
    return {"items": drawn}


def rollout_plan(connection: Connection, asked: Asked) -> Annotated[Document, Shape((AgainstPlan,))]:
    """A rollout held against the plan of its beginning."""
    return asdict(against_plan(connection, rollout(connection, asked)["id"]))


def history(connection: Connection, asked: Asked) -> Annotated[Document, Shape((HistoryView,), "page")]:
    """What happened to a deployment, the newest first."""
    view = named(connection, asked)
    return page_of(history_page(connection, view.id, asked.parameters.cursor, asked.parameters.limit))


def routes(connection: Connection, asked: Asked) -> Replicas:
    """The replicas of a deployment, and the one that failed last."""
    view = named(connection, asked)
    found = all_routes(connection, view.id, asked.parameters.limit) if asked.parameters.gone else view.routes
    return {"items": found, "last_failed": last_failed_route(connection, view.id)}


def progress(connection: Connection, asked: Asked) -> Annotated[Document, Shape((Progress,))]:
    """What who waits for a rollout looks at again and again."""
    view = named(connection, asked)
    wanted = asked.parameters.rollout
    if wanted is not None and rollout_document(connection, wanted)["deployment"] != view.name:
        raise RolloutNotFoundError(f"{view.name} has no rollout {wanted}", rollout_id=wanted)
    found = progress_of(connection, view.id, wanted, asked.parameters.after)
    return {**asdict(found), "deployment": deployment_summary(found.deployment)}


def traffic_table(connection: Connection, asked: Asked) -> Annotated[Document, Shape((TrafficTable,))]:
    """The deployments that the token is for, as proxies are told of them; to who sees all, with what is left out."""
    found = derive_table(read_traffic(connection))
    seen = [service for service in found.services if asked.token.sees(service.name)]
    return {**asdict(found), "services": seen, "faults": found.faults if asked.token.is_for_all else ()}


def named(connection: Connection, asked: Asked) -> DeploymentView:
    """The deployment in the path. Raises DeploymentNotFoundError."""
    return deployment_named(connection, asked.deployment)


def page_of(page: Page[Any]) -> Document:
    """As JSON has it: its items, and the cursor of the next one."""
    return {"items": page.items, "next": page.next}


def rollout_id(asked: Asked) -> UUID:
    """The one in the path. Raises InvalidInputError."""
    try:
        return UUID(asked.path["rollout"])
    except ValueError:
        raise InvalidInputError("rollout: must be the id of a rollout", field="rollout") from None
