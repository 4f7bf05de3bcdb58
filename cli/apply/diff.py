"""`rollway diff`, and `rollway apply --dry-run`: what a file would change, without changing it."""

from collections.abc import Iterable
from typing import Annotated
from uuid import uuid4

import typer

from cli.apply.difference import Difference, difference
from cli.apply.file import DeploymentFile, read_file
from cli.apply.known import known_of
from cli.apply.plan import ApplyRequest, Known, plan
from cli.options import AsJson, Supersede
from cli.servers import Reader
from cli.terminal.exits import ExitCode
from cli.terminal.output import print_diff, print_json, printer
from db.views.timeline import RevisionView, revision_like


def diff(
    *,
    file: Annotated[str, typer.Option("--file", "-f", metavar="FILE", help="YAML file; - reads standard input.")],
    activate: Annotated[bool, typer.Option("--activate/--no-activate", help="Activate the revision.")] = True,
    supersede: Supersede = False,
    as_json: AsJson = False,
) -> None:
    """Show what a file would change. Touches nothing.

    The fields that the file mentions are held against what is stored: - is stored, + stands in the file. Values of
    variables are never shown. Exit code 5 when there is a difference, 0 when there is none.
    """
    request = ApplyRequest("diff", "", str(uuid4()), supersede, activate)
    with Reader() as reader:
        found = [difference_of(reader, document, request) for document in read_file(file)]
    tell_differences(found, as_json=as_json, in_words=False)


def difference_of(reader: Reader, file: DeploymentFile, request: ApplyRequest) -> Difference:
    """Of one document. Raises what `cli.apply.plan` refuses."""
    known = known_of(reader, file)
    would = tuple(step.sentence for step in plan(file, known, request))
    is_activated = file.activate and request.activate
    return difference(file, known, _running(reader, known, file) if is_activated else known.revision, would)


def tell_differences(found: Iterable[Difference], *, as_json: bool, in_words: bool) -> None:
    """Print them, and end with code 5 if there is one. `in_words`: what applying would do, too."""
    differences = list(found)
    if as_json:
        print_json([each.as_json() for each in differences])
    else:
        for each in differences:
            _print(each, in_words=in_words)
    if any(each.is_one for each in differences):
        raise typer.Exit(ExitCode.DIFFERENT)


def _print(found: Difference, *, in_words: bool) -> None:
    print_diff(found.lines)
    if in_words:
        for sentence in found.would or ["nothing to do"]:
            printer().print(f"{found.deployment}: {'would be: ' if found.would else ''}{sentence}")


def _running(reader: Reader, known: Known, file: DeploymentFile) -> RevisionView | None:
    """What runs, or is being rolled out; values that the file does not have are masked."""
    deployment = known.deployment
    if deployment is None or file.revision is None:
        return None
    name = deployment.deploying_revision or deployment.current_revision
    if name is None:
        return None
    return reader.read(revision_like, deployment.id, name, file.revision.spec)
