"""`rollway apply`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any
from uuid import UUID

import typer
from rich.console import Console

from cli.apply.diff import difference_of, tell_differences
from cli.apply.file import DeploymentFile, read_file
from cli.apply.known import known_of
from cli.apply.plan import ApplyRequest, PlannedStep, plan
from cli.options import WAIT_SECONDS, Actor, AsJson, Reason, RequestId, Supersede, ThroughFreeze, Timeout, Wait
from cli.sending import Result
from cli.servers import Reader, ask_hosts_for_secrets, send
from cli.show.film import Film
from cli.show.signs import warn_of_hosts_passed_over, warn_of_missing_evidence, warn_of_missing_worker
from cli.show.waiting import rollout_completed, wait_until
from cli.terminal.output import print_json, printer
from db.freezes import frozen_now
from db.views.deployments import DeploymentView, existing_deployments
from domain.commands.rollout import ActivateRevision
from domain.revisions.secret_checks import passed_over
from domain.revisions.secrets import references_of


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
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would change; exit code 5 if anything.")
    ] = False,
    supersede: Supersede = False,
    through_freeze: ThroughFreeze = False,
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
          idle_timeout_seconds: 600  # left out: 3600; null: a silent request is never cut
          hedge_after_seconds: 5     # null: a request that waits is never sent to a second replica too
          protocol: http2            # what replicas speak, as gRPC needs it; left out: http1
          preview: false             # nobody sees a new revision before it gets traffic
        activate: true               # false: only register the revision

    Several deployments may stand in one file, separated by ---. Everything is checked before anything is written.

    A working_directory is meant from the file's folder; without one, a command runs where the workers run.
    """  # noqa: D301  (\b must be the character)
    console = printer(quiet=as_json)
    documents = read_file(file)
    request = ApplyRequest(actor, reason, request_id, supersede, activate, through_freeze)
    with Reader() as reader:
        if dry_run:
            found = [difference_of(reader, document, request) for document in documents]
            return tell_differences(found, as_json=as_json, in_words=True)
        plans = [(document, plan(document, known_of(reader, document), request)) for document in documents]
        _refuse_frozen(reader, plans)
        _refuse_missing_secrets(plans)
        applied = []
        for document, steps in plans:
            applied.append(_carry_out(document, steps))
            for sentence in applied[-1].sentences or ["nothing to do"]:
                console.print(f"{document.deployment}: {sentence}")
            warn_of_hosts_passed_over(applied[-1].results, console)
        warn_of_missing_evidence(reader, [each.deployment for each in applied if each.rollout_id], console)
        warn_of_missing_worker(reader, console)
        views = [_wait(reader, each, timeout, console) for each in applied] if wait else []
    if as_json:
        print_json(_documents(applied, views))
    return None


def _refuse_frozen(reader: Reader, plans: Sequence[tuple[DeploymentFile, list[PlannedStep]]]) -> None:
    """Before anything is written. Raises FrozenError for what a freeze keeps from starting."""
    for document, steps in plans:
        activated = next((step.command for step in steps if isinstance(step.command, ActivateRevision)), None)
        if activated is None or activated.through_freeze or activated.supersede:  # which may be the way back
            continue
        if is_frozen := reader.read(frozen_now, document.deployment):
            raise is_frozen.refusal(document.deployment)


def _refuse_missing_secrets(plans: Sequence[tuple[DeploymentFile, list[PlannedStep]]]) -> None:
    """Before anything is written. Raises MissingSecretError for what no host could run."""
    for document, steps in plans:
        activated = next((step.command for step in steps if isinstance(step.command, ActivateRevision)), None)
        if activated is None or document.revision is None:
            continue
        references = sorted({reference.secret for reference in references_of(document.revision.env).values()})
        if references:
            passed_over(activated.revision, ask_hosts_for_secrets(document.deployment, references))


def _carry_out(file: DeploymentFile, steps: list[PlannedStep]) -> _Applied:
    return _Applied(file.deployment, [step.sentence for step in steps], [send(step.command) for step in steps])


def _wait(reader: Reader, applied: _Applied, timeout: float, console: Console) -> DeploymentView:
    (deployment,) = reader.read(existing_deployments, [applied.deployment])
    film = Film(console, rollout_id=applied.rollout_id or deployment.rollout_id)
    if applied.rollout_id is None and deployment.rollout is not None:
        film.last_step = deployment.rollout.steps
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
