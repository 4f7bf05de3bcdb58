"""`rollway apply`."""

from dataclasses import dataclass
from typing import Annotated, Any
from uuid import UUID

import typer

from cli.apply.file import DeploymentFile, read_file
from cli.apply.plan import ApplyRequest, KnownRevision, KnownTraffic, PlannedStep, plan
from cli.options import WAIT_SECONDS, Actor, AsJson, Reason, RequestId, Supersede, Timeout, Wait
from cli.output import print_json, printer
from cli.servers import Reader, send
from cli.show.film import Film
from cli.show.waiting import rollout_completed, wait_until
from db.views.deployments import DeploymentView, existing_deployments
from db.views.entrances import owners_of, reached_at
from db.views.timeline import revision_named
from domain.replicas.revision import RevisionSpec


@dataclass(frozen=True, slots=True)
class _Outcome:
    deployment: str
    done: list[str]
    results: list[dict[str, Any]]
    rollout_id: UUID | None


def apply(
    *,
    file: Annotated[str, typer.Option("--file", "-f", metavar="FILE", help="YAML file; - reads standard input.")],
    activate: Annotated[bool, typer.Option("--activate/--no-activate", help="Activate the revision.")] = True,
    supersede: Supersede = False,
    wait: Wait = False,
    timeout: Timeout = WAIT_SECONDS,
    reason: Reason = "",
    actor: Actor,
    request_id: RequestId,
    as_json: AsJson = False,
) -> None:
    """Make deployments what a YAML file says. Applied again, it says that there is nothing to do.

    \b
        deployment: web
        replicas: 3                  # left out: stays as it is, 1 at first
        revision:
          name: v1                   # left out: made from the content
          command: python examples/http_service.py
          env: {VERSION: "1"}
          health_check: {path: /health, interval_seconds: 1}
        policy:                      # left out: stays; null: no rollouts
          strategy: rolling_update
          spec: {max_surge: 1, max_unavailable: 1}
          limits: {timeout_seconds: 300}
        traffic:                     # left out: stays, at first hosts web and web.localhost, and path /web/
          hosts: [web.example.com]
          path_prefix: /api/
          strip_prefix: true         # false: replicas see the prefix
          request_timeout_seconds: 30
        activate: true               # false: only register the revision

    Several deployments may stand in one file, separated by ---. Everything is checked before anything is written.

    A working_directory is meant from the file's folder; without one, a command runs where the workers run.
    """  # noqa: D301  (\b must be the character)
    console = printer(quiet=as_json)
    files = read_file(file)
    request = ApplyRequest(actor, reason, request_id, supersede, activate)
    with Reader() as reader:
        plans = [(one, _plan(reader, one, request)) for one in files]
        outcomes = []
        for one, steps in plans:
            outcomes.append(_carry_out(one, steps))
            for said in outcomes[-1].done or ["nothing to do"]:
                console.print(f"{one.deployment}: {said}")
        views = [_wait(reader, one, timeout, as_json=as_json) for one in outcomes] if wait else []
    if as_json:
        print_json(_document(outcomes, views))


def _plan(reader: Reader, file: DeploymentFile, request: ApplyRequest) -> list[PlannedStep]:
    there = next(iter(reader.read(existing_deployments, [file.deployment])), None)
    known = None
    if there is not None and file.revision_name is not None:
        found = reader.read(revision_named, there.id, file.revision_name)
        known = KnownRevision(found.id, RevisionSpec.model_validate(found.spec)) if found else None
    return plan(file, there, known, _known_traffic(reader, file, there), request)


def _known_traffic(reader: Reader, file: DeploymentFile, there: DeploymentView | None) -> KnownTraffic:
    reached = reader.read(reached_at, there.id) if there else None
    wanted = file.wanted_traffic
    entrances = wanted.entrances_of(file.deployment) if wanted else ()
    return KnownTraffic(reached, reader.read(owners_of, entrances, file.deployment) if entrances else {})


def _carry_out(file: DeploymentFile, steps: list[PlannedStep]) -> _Outcome:
    results = [send(step.command) for step in steps]
    rollout_id = next((UUID(one["rollout_id"]) for one in results if one.get("rollout_id")), None)
    return _Outcome(file.deployment, [step.said for step in steps], results, rollout_id)


def _wait(reader: Reader, outcome: _Outcome, timeout: float, *, as_json: bool) -> DeploymentView:
    (there,) = reader.read(existing_deployments, [outcome.deployment])
    film = Film(printer(quiet=as_json), rollout_id=outcome.rollout_id or there.rollout_id)
    return wait_until(rollout_completed, reader, there.id, timeout, film).deployment


def _document(outcomes: list[_Outcome], views: list[DeploymentView]) -> list[dict[str, Any]]:
    documents: list[dict[str, Any]] = [
        {"deployment": one.deployment, "changed": bool(one.done), "done": one.done, "results": one.results}
        for one in outcomes
    ]
    for document, view in zip(documents, views, strict=False):
        document["state"] = str(view.lifecycle)
    return documents
