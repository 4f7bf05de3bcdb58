"""`rollway apply`."""

from dataclasses import dataclass
from typing import Annotated, Any
from uuid import UUID

import typer
from rich.console import Console

from cli.apply.file import DeploymentFile, read_file
from cli.apply.plan import ApplyRequest, Known, PlannedStep, plan
from cli.options import WAIT_SECONDS, Actor, AsJson, Reason, RequestId, Supersede, Timeout, Wait
from cli.output import print_json, printer
from cli.sending import Result
from cli.servers import Reader, send
from cli.show.film import Film
from cli.show.signs import warn_of_missing_worker
from cli.show.waiting import rollout_completed, wait_until
from db.views.deployments import DeploymentView, existing_deployments
from db.views.entrances import owners_of, reached_at
from db.views.timeline import revision_named


@dataclass(frozen=True, slots=True)
class _Applied:
    """What became of one document: the sentences, and the results, of the commands that it needed."""

    deployment: str
    sentences: list[str]
    results: list[Result]

    @property
    def rollout_id(self) -> UUID | None:
        """The rollout that began, if one did."""
        return next((UUID(result["rollout_id"]) for result in self.results if result.get("rollout_id")), None)


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
          hedge_after_seconds: 5     # null: a request that waits is never sent to a second replica too
          preview: false             # nobody sees a new revision before it gets traffic
        activate: true               # false: only register the revision

    Several deployments may stand in one file, separated by ---. Everything is checked before anything is written.

    A working_directory is meant from the file's folder; without one, a command runs where the workers run.
    """  # noqa: D301  (\b must be the character)
    console = printer(quiet=as_json)
    documents = read_file(file)
    request = ApplyRequest(actor, reason, request_id, supersede, activate)
    with Reader() as reader:
        plans = [(document, plan(document, _known(reader, document), request)) for document in documents]
        applied = []
        for document, steps in plans:
            applied.append(_carry_out(document, steps))
            for sentence in applied[-1].sentences or ["nothing to do"]:
                console.print(f"{document.deployment}: {sentence}")
        warn_of_missing_worker(reader, console)
        views = [_wait(reader, each, timeout, console) for each in applied] if wait else []
    if as_json:
        print_json(_documents(applied, views))


def _known(reader: Reader, file: DeploymentFile) -> Known:
    wanted = file.wanted_traffic
    entrances = wanted.entrances_of(file.deployment) if wanted else ()
    owners = reader.read(owners_of, entrances, file.deployment) if entrances else {}
    deployment = next(iter(reader.read(existing_deployments, [file.deployment])), None)
    if deployment is None:
        return Known(owners=owners)
    revision = reader.read(revision_named, deployment.id, file.revision_name) if file.revision_name else None
    return Known(deployment, revision, reader.read(reached_at, deployment.id), owners)


def _carry_out(file: DeploymentFile, steps: list[PlannedStep]) -> _Applied:
    return _Applied(file.deployment, [step.sentence for step in steps], [send(step.command) for step in steps])


def _wait(reader: Reader, applied: _Applied, timeout: float, console: Console) -> DeploymentView:
    (deployment,) = reader.read(existing_deployments, [applied.deployment])
    film = Film(console, rollout_id=applied.rollout_id or deployment.rollout_id)
    return wait_until(rollout_completed, reader, deployment.id, timeout, film).deployment


def _documents(applied: list[_Applied], views: list[DeploymentView]) -> list[dict[str, Any]]:
    documents: list[dict[str, Any]] = [
        {
            "deployment": each.deployment,
            "changed": bool(each.sentences),
            "done": each.sentences,
            "results": each.results,
        }
        for each in applied
    ]
    for document, view in zip(documents, views, strict=False):
        document["state"] = str(view.lifecycle)
    return documents
