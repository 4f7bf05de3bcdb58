"""`rollway diff`, and `rollway apply --dry-run`: what a file would change, without changing it."""

import difflib
from collections.abc import Mapping
from typing import Annotated, Any

import typer
import yaml

from cli.apply.file import to_apply
from cli.options import AsJson, Supersede
from cli.servers import Reader
from cli.terminal.exits import ExitCode
from cli.terminal.output import print_diff, print_json, printer
from db.commands.apply.difference import DocumentDifference
from domain.commands.apply.document import Apply


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

    The fields that the file mentions are held against what is stored: - is stored, + stands in the file. Values of
    variables are masked, unless --values asks for those that differ; secrets are references, and are shown as such.
    Exit code 5 when there is a difference, 0 when there is none.
    """
    asked = to_apply(file, activate=activate, supersede=supersede)
    tell_differences(asked, as_json=as_json, in_words=False, values=values)


def tell_differences(asked: Apply, *, as_json: bool, in_words: bool, values: bool = False) -> None:
    """Print what would change, and end with code 5 if anything would. `in_words`: what applying would do, too."""
    with Reader() as reader:
        found = reader.views(DocumentDifference, "/v1/apply/difference", **documents_asked(asked), values=values)
    if as_json:
        print_json([_as_json(difference) for difference in found])
    else:
        for difference in found:
            _print(difference, in_words=in_words)
    if any(difference.would for difference in found):
        raise typer.Exit(ExitCode.DIFFERENT)


def documents_asked(asked: Apply) -> dict[str, Any]:
    """The documents and what is to be done with them, as the reads of what is not applied yet take it."""
    return asked.model_dump(mode="json", include={"documents", "activate", "supersede"})


def _as_json(found: DocumentDifference) -> dict[str, Any]:
    diff = "".join(f"{line}\n" for line in _lines(found))
    return {"deployment": found.deployment, "differs": bool(found.would), "would": list(found.would), "diff": diff}


def _print(found: DocumentDifference, *, in_words: bool) -> None:
    print_diff(_lines(found))
    if in_words:
        for sentence in found.would or ["nothing to do"]:
            printer().print(f"{found.deployment}: {'would be: ' if found.would else ''}{sentence}")
    for note in found.notes:
        printer(stderr=True).print(f"note: {found.deployment}: {note}", style="yellow")


def _lines(found: DocumentDifference) -> tuple[str, ...]:
    """The lines as `diff -u` has them; none where applying would do nothing."""
    names = (f"stored/{found.deployment}", f"file/{found.deployment}")
    lines = difflib.unified_diff(_yaml(found.stored), _yaml(found.wanted), *names, lineterm="")
    return tuple(lines) if found.would else ()


def _yaml(document: Mapping[str, Any]) -> list[str]:
    if not document:
        return []
    return yaml.safe_dump(dict(document), sort_keys=False, allow_unicode=True, width=1000).splitlines()
