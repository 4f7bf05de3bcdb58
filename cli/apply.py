"""`rollway apply` and `rollway diff`: a file of deployments becomes commands."""

import difflib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, cast
from uuid import UUID, uuid4

import typer
import yaml
from pydantic import ValidationError
from rich.console import Console

from api.people.strict_yaml import MOST_YAML_BYTES, TOO_LONG, documents_of, lines_in
from cli.client import Reader, deployment_named
from cli.options import WAIT_SECONDS, AsJson, Supersede, ThroughFreeze, Timeout, Wait
from cli.sending import Asker, asking
from cli.show.rollout_log import RolloutLog, rollout_completed, wait_until
from cli.show.status import warn_of_doubts, warn_of_hosts_passed_over, warn_of_missing_worker
from cli.terminal.exits import ExitCode
from cli.terminal.output import print_diff, print_json, printer
from db.commands.apply.difference import DocumentDifference
from db.views.deployment_view import DeploymentView
from domain.commands.apply.document import MOST_DOCUMENTS, Apply, Document, disagreement
from domain.text.errors import InvalidInputError
from domain.text.storable import unstorable


def read_file(name: str) -> list[Document]:
    """The documents of a YAML file, `-` for standard input. Raises InvalidInputError naming file and field."""
    source = "standard input" if name == "-" else name
    return documents_in(_text(name, source), source, Path.cwd() if name == "-" else Path(name).resolve().parent)


def to_apply(name: str, *, activate: bool = True, supersede: bool = False) -> Apply:
    """The command of a YAML file, for a question about its effect. Raises InvalidInputError naming the file."""
    documents = read_file(name)
    try:
        return Apply(documents=documents, request_id=str(uuid4()), activate=activate, supersede=supersede)
    except ValidationError as error:
        raise _fault(name, InvalidInputError.of(error, model=Apply).message) from None


def documents_in(text: str, source: str, folder: Path) -> list[Document]:
    """The documents of a text whose paths belong to the folder. Raises InvalidInputError naming the field."""
    parts = _yaml(source, text)
    is_single = len(parts) == 1
    try:
        documents = [
            _document(part, "" if is_single else f"documents.{number}", folder) for number, part in enumerate(parts)
        ]
    except InvalidInputError as error:
        line_of = lines_in(text)
        by_line = error.with_lines(lambda path: line_of((0, *path) if is_single else path[1:]) if path else None)
        raise _fault(source, by_line.message) from None
    if fault := disagreement(documents):
        raise _fault(source, fault)
    return documents


def _yaml(source: str, text: str) -> list[object]:
    try:
        parts = [part for part in documents_of(text) if part is not None]
    except ValueError as error:
        raise _fault(source, str(error)) from None
    if not parts:
        raise _fault(source, "holds no deployment; 'rollway apply --help' shows what belongs in it")
    if len(parts) > MOST_DOCUMENTS:
        why = (
            f"holds {len(parts):,} deployments, and {MOST_DOCUMENTS} are the most at once; divide it into several files"
        )
        raise _fault(source, why)
    return parts


def text_of(name: str) -> str:
    """The text of a file, `-` for standard input, of which no more is read than it may have.

    Raises OSError, and ValueError saying what is wrong with it.
    """
    if name == "-":
        content = sys.stdin.buffer.read(MOST_YAML_BYTES + 1)
    else:
        with Path(name).open("rb") as file:
            content = file.read(MOST_YAML_BYTES + 1)
    if len(content) > MOST_YAML_BYTES:
        raise ValueError(TOO_LONG)
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise ValueError("is no UTF-8 text") from None


def _text(name: str, source: str) -> str:
    try:
        return text_of(name)
    except OSError as error:
        raise _fault(source, f"cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise _fault(source, str(error)) from None


def _document(raw: object, where: str, folder: Path) -> Document:
    if not isinstance(raw, dict):
        raise InvalidInputError.at(where, "must be fields such as 'deployment: web'; 'rollway apply --help' shows them")
    if {"apiVersion", "kind"} <= raw.keys():
        raise InvalidInputError.at(
            where, "is a manifest of Kubernetes; 'rollway apply --help' shows what a file has here"
        )
    if "services" in raw and "deployment" not in raw:
        raise InvalidInputError.at(
            where, "is a file of Docker Compose; 'rollway apply --help' shows what a file has here"
        )
    if fault := unstorable(raw):
        raise InvalidInputError.at(".".join(filter(None, (where, fault[0]))), fault[1])
    try:
        parsed = Document.model_validate(raw)
    except ValidationError as error:
        raise InvalidInputError.of(error, where, Document) from None
    return _in_folder_of_file(parsed, folder)


def _in_folder_of_file(parsed: Document, folder: Path) -> Document:
    """A process runs in the folder of the file, or in one that is relative to it; null: where the worker runs."""
    revision = parsed.revision
    if revision is None or revision.runtime != "process":
        return parsed
    path = revision.working_directory
    if path is None and "working_directory" in revision.model_fields_set:
        return parsed
    absolute = str(folder / (path or ""))
    return parsed.model_copy(update={"revision": revision.model_copy(update={"working_directory": absolute})})


def _fault(where: str, message: str) -> InvalidInputError:
    return InvalidInputError(f"{where}: {message}", file=where)


def diff(
    *,
    file: Annotated[str, typer.Option("--file", "-f", metavar="FILE", help="YAML file; - reads standard input.")],
    activate: Annotated[bool, typer.Option("--activate/--no-activate", help="Activate the revision.")] = True,
    supersede: Supersede = False,
    values: Annotated[
        bool, typer.Option("--values", help="Show values of variables that differ. Not for a log that others read.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show what a file would change. Touches nothing.

    The fields that the file mentions are held against what is stored: - is stored, + is in the file. Values of
    variables are masked, unless --values asks for those that differ; secrets are references, and are shown as such.
    Exit code 5 when there is a difference, 0 when there is none.
    """
    command = to_apply(file, activate=activate, supersede=supersede)
    tell_differences(command, as_json=as_json, in_words=False, values=values)


def tell_differences(command: Apply, *, as_json: bool, in_words: bool, values: bool = False) -> None:
    """Print the changes, and end with code 5 if there are any. `in_words`: the effect of applying, too."""
    with Reader() as reader:
        items = reader.views(DocumentDifference, "/v1/apply/difference", **documents_asked(command), values=values)
    if as_json:
        print_json([_as_json(difference) for difference in items])
    else:
        for difference in items:
            _print(difference, in_words=in_words)
    if any(difference.would for difference in items):
        raise typer.Exit(ExitCode.DIFFERENT)


def documents_asked(command: Apply) -> dict[str, Any]:
    """The documents and their options, as the reads about documents take them."""
    return command.model_dump(mode="json", include={"documents", "activate", "supersede"})


def _as_json(difference: DocumentDifference) -> dict[str, Any]:
    diff = "".join(f"{line}\n" for line in _lines(difference))
    return {
        "deployment": difference.deployment,
        "differs": bool(difference.would),
        "would": list(difference.would),
        "diff": diff,
    }


def _print(difference: DocumentDifference, *, in_words: bool) -> None:
    print_diff(_lines(difference))
    if in_words:
        for sentence in difference.would or ["nothing to do"]:
            printer().print(f"{difference.deployment}: {'would be: ' if difference.would else ''}{sentence}")
    for note in difference.notes:
        printer(stderr=True).print(f"note: {difference.deployment}: {note}", style="yellow")


def _lines(difference: DocumentDifference) -> tuple[str, ...]:
    """The lines as `diff -u` has them; none where applying would do nothing."""
    names = (f"stored/{difference.deployment}", f"file/{difference.deployment}")
    lines = difflib.unified_diff(_as_yaml(difference.stored), _as_yaml(difference.wanted), *names, lineterm="")
    return tuple(lines) if difference.would else ()


def _as_yaml(document: Mapping[str, Any]) -> list[str]:
    if not document:
        return []
    return yaml.safe_dump(dict(document), sort_keys=False, allow_unicode=True, width=1000).splitlines()


AppliedTo = dict[str, Any]
"""The result of one document, as `domain.commands.results.AppliedDocument` has it."""


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
    """Create or change deployments as a YAML file describes them. Applying it again changes nothing.

    Replicas that failed to start are then tried again at once.

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
          hold_seconds: 20           # how long a request waits while nothing serves, as in recreate; then 503
          slow_start_seconds: 30     # how long the share of a new replica grows until it is full
          preview: false             # whether a new revision can be reached before it gets traffic
        activate: true               # false: only register the revision

    One file may hold several deployments, separated by ---. All of them are written, or none.

    A command runs in the folder of its file, or in a working_directory that is meant from there; with
    'working_directory: null' it runs where the workers run.
    """  # noqa: D301  (\b must be the character)
    console = printer(quiet=asker.as_json)
    settings = {"supersede": supersede, "activate": activate, "through_freeze": through_freeze}
    documents = read_file(file)
    payload = {"documents": [document.model_dump(mode="json") for document in documents], **settings}
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
        _say_what_is_not_compared(documents, applied, console)
        warn_of_doubts(reader, [each["deployment"] for each in applied if each["rollout_id"]], console)
        warn_of_missing_worker(reader, console)
        views = [_wait(reader, document, timeout, console) for document in applied] if wait else []
    if asker.as_json:
        print_json(_documents(applied, views))
    return None


def _say_what_is_not_compared(documents: list[Document], applied: list[AppliedTo], console: Console) -> None:
    """A program may have changed while its file says the same: name the command that rolls it out."""
    for document, became in zip(documents, applied, strict=True):
        revision, is_unchanged = document.revision, not became["done"] and not became["rollout_id"]
        if is_unchanged and document.activate and revision is not None and revision.runtime == "process":
            note = f"note: a program that has changed is rolled out by 'rollway restart {document.deployment}'"
            printer(stderr=True, quiet=console.quiet).print(note, style="yellow")


def _wait(reader: Reader, applied: AppliedTo, timeout: float, console: Console) -> DeploymentView:
    deployment = deployment_named(reader, applied["deployment"])
    rollout_id = UUID(applied["rollout_id"]) if applied["rollout_id"] else None
    film = RolloutLog(console, rollout_id=rollout_id or deployment.rollout_id)
    if rollout_id is None and deployment.rollout is not None:
        film.last_step = deployment.rollout.steps
    return wait_until(rollout_completed, reader, deployment.name, timeout, film).deployment


def _documents(applied: list[AppliedTo], views: list[DeploymentView]) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = [
        {
            "deployment": document["deployment"],
            "changed": bool(document["done"]),
            "done": document["done"],
            "results": document["results"],
            "notes": list(document.get("notes", ())),
        }
        for document in applied
    ]
    for document, view in zip(items, views, strict=False):
        document["state"] = str(view.lifecycle)
    return items
