"""`rollway apply`."""

from typing import Annotated, Any, cast
from uuid import UUID

import typer
from rich.console import Console

from cli.apply.diff import tell_differences
from cli.apply.file import read_file
from cli.options import WAIT_SECONDS, Supersede, ThroughFreeze, Timeout, Wait
from cli.reads import deployment_named
from cli.sending import Asker, asking
from cli.servers import Reader
from cli.show.film import Film
from cli.show.signs import warn_of_doubts, warn_of_hosts_passed_over, warn_of_missing_worker
from cli.show.waiting import rollout_completed, wait_until
from cli.terminal.output import print_json, printer
from db.views.deployment_view import DeploymentView
from domain.commands.apply.document import Apply, Document

AppliedTo = dict[str, Any]
"""What became of one document, as `domain.commands.answers.AppliedDocument` has it."""


@asking
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
    asker: Asker,
) -> None:
    """Make deployments what a YAML file says. Applied again, it says that there is nothing to do.

    What has failed to start is then tried again at once: what it lacked may be there now.

    \b
        deployment: web
        replicas: 3                  # left out: stays as it is, 1 at first; with autoscaling rules: at first alone
        revision:
          name: v1                   # left out: made from the content
          command: python serve.py
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
          tls: auto                  # by HTTPS, with certificates from Let's Encrypt: docs/certificates.md
          hold_seconds: 20           # while nothing serves, as in recreate, a request waits so long, else 503
          preview: false             # nobody sees a new revision before it gets traffic
        activate: true               # false: only register the revision

    Several deployments may stand in one file, separated by ---. All of it is written, or nothing.

    A command runs in the folder of its file, or in a working_directory that is meant from there; with
    'working_directory: null' it runs where the workers run.
    """  # noqa: D301  (\b must be the character)
    console = printer(quiet=asker.as_json)
    settings = {"supersede": supersede, "activate": activate, "through_freeze": through_freeze}
    given = read_file(file)
    payload = {"documents": [document.model_dump(mode="json") for document in given], **settings}
    if dry_run:
        command = cast("Apply", asker.command(Apply, **payload))
        return tell_differences(command, as_json=asker.as_json, in_words=True)
    applied = asker.send(Apply, **payload)["documents"]
    with Reader() as reader:
        for document in applied:
            for sentence in document["done"] or ["nothing to do"]:
                console.print(f"{document['deployment']}: {sentence}")
            for note in document.get("notes", ()):  # the server may be older
                printer(stderr=True, quiet=console.quiet).print(
                    f"note: {document['deployment']}: {note}", style="yellow"
                )
            warn_of_hosts_passed_over(document["results"], console)
        _say_what_is_not_compared(given, applied, console)
        warn_of_doubts(reader, [each["deployment"] for each in applied if each["rollout_id"]], console)
        warn_of_missing_worker(reader, console)
        views = [_wait(reader, document, timeout, console) for document in applied] if wait else []
    if asker.as_json:
        print_json(_documents(applied, views))
    return None


def _say_what_is_not_compared(given: list[Document], applied: list[AppliedTo], console: Console) -> None:
    """A program may have changed while its file says the same: name the command that rolls it out."""
    for document, became in zip(given, applied, strict=True):
        revision, is_unchanged = document.revision, not became["done"] and not became["rollout_id"]
        if is_unchanged and document.activate and revision is not None and revision.runtime == "process":
            note = f"note: a program that has changed is rolled out by 'rollway restart {document.deployment}'"
            printer(stderr=True, quiet=console.quiet).print(note, style="yellow")


def _wait(reader: Reader, applied: AppliedTo, timeout: float, console: Console) -> DeploymentView:
    deployment = deployment_named(reader, applied["deployment"])
    rollout_id = UUID(applied["rollout_id"]) if applied["rollout_id"] else None
    film = Film(console, rollout_id=rollout_id or deployment.rollout_id)
    if rollout_id is None and deployment.rollout is not None:
        film.last_step = deployment.rollout.steps
    return wait_until(rollout_completed, reader, deployment.name, timeout, film).deployment


def _documents(applied: list[AppliedTo], views: list[DeploymentView]) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = [
        {
            "deployment": document["deployment"],
            "changed": bool(document["done"]),
            "done": document["done"],
            "results": document["results"],
            "notes": list(document.get("notes", ())),
        }
        for document in applied
    ]
    for document, view in zip(told, views, strict=False):
        document["state"] = str(view.lifecycle)
    return told
