"""`rollway revisions`: the revisions of a deployment, in the form that `rollway apply` reads."""

import difflib
import json
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Annotated, Any

import typer
import yaml
from rich.text import Text

from api.people.paths import DEPLOYMENT
from cli.client import Reader, deployment_named, revision_shown
from cli.completion import revisions_offered
from cli.options import AsJson, DeploymentName
from cli.terminal.exits import ExitCode, UsageError
from cli.terminal.output import ago, columns, print_diff, print_json, printer
from db.views.deployment_view import DeploymentView
from db.views.timeline import RevisionView
from domain.revisions.revision import stored_spec
from domain.revisions.secret_refs import MASK
from domain.text.errors import RevisionNotFoundError


class Action(StrEnum):
    """The things to do with revisions."""

    LIST = "list"
    SHOW = "show"
    DIFF = "diff"


_Action = Annotated[Action, typer.Argument(metavar="list|show|diff", help="What to do.", show_default=False)]
_Revision = Annotated[
    str | None,
    typer.Argument(
        metavar="[REVISION]",
        help="With show and diff.",
        show_default="the current one",
        autocompletion=revisions_offered,
    ),
]
_Other = Annotated[
    str | None,
    typer.Argument(
        metavar="[OTHER]",
        help="With diff: compared with the first one.",
        show_default="the current one",
        autocompletion=revisions_offered,
    ),
]


def revisions(
    *,
    action: _Action,
    deployment: DeploymentName,
    revision: _Revision = None,
    other: _Other = None,
    lines: Annotated[int, typer.Option("--lines", "-n", min=1, max=10_000, help="How many, the newest.")] = 20,
    as_json: AsJson = False,
) -> None:
    """List revisions, show one, or how two differ. They are shown as YAML, with the values of variables masked.

    'rollway apply' accepts this YAML: for a revision that exists, *** means the value that it has.
    """
    with Reader() as reader:
        view = deployment_named(reader, deployment)
        match action, revision, other:
            case Action.LIST, None, None:
                views = reader.views(RevisionView, f"{DEPLOYMENT}/revisions", deployment, most=lines)
                return _list(view, views, as_json=as_json)
            case Action.SHOW, _, None:
                return _show(view, _choose(reader, view, revision), as_json=as_json)
            case Action.DIFF, str(), _:
                before, after = (_choose(reader, view, name) for name in (revision, other))
                path = f"{DEPLOYMENT}/revisions/{{revision}}/difference"
                hidden = reader.ask(path, deployment, before.name, other=after.name)["hidden"]
                return _diff(view, before, after, hidden, as_json=as_json)
    raise UsageError("give one deployment to 'list', a revision at most to 'show', and one or two to 'diff'")


def _choose(reader: Reader, view: DeploymentView, name: str | None) -> RevisionView:
    """The revision of that name, or the current one. Raises RevisionNotFoundError."""
    target = name or view.current_revision
    revision = revision_shown(reader, view.name, target) if target else None
    if revision is None:
        message = f"{view.name} has no {f'revision {target}' if target else 'current revision'}"
        more = f"'rollway revisions list {view.name}' lists them"
        raise RevisionNotFoundError(f"{message}; {more}", deployment=view.name, revision=target or "")
    return revision


def _list(view: DeploymentView, revisions: list[RevisionView], *, as_json: bool) -> None:
    if as_json:
        return print_json(revisions)
    table = columns("REVISION", "MADE", "", "RUNS")
    for revision in revisions:
        table.add_row(revision.name, ago(revision.created_at, view.now), _place(view, revision), _runs(revision))
    return printer().print(table, soft_wrap=False)


def _place(view: DeploymentView, revision: RevisionView) -> Text:
    if revision.id == view.current_revision_id:
        return Text("current", "green")
    return Text("deploying", "yellow") if revision.id == view.deploying_revision_id else Text("")


def _runs(revision: RevisionView) -> str:
    """The image or the command of a revision, in short."""
    docker = revision.spec.get("docker") or {}
    words = revision.spec.get("command") or []
    return " ".join(map(str, (*([docker["image"]] if "image" in docker else []), *words)))


def _show(view: DeploymentView, revision: RevisionView, *, as_json: bool) -> None:
    if as_json:
        return print_json(revision)
    return printer().print(_yaml(view, revision, _content(revision)), end="")


def _diff(
    view: DeploymentView, before: RevisionView, after: RevisionView, hidden: Iterable[str], *, as_json: bool
) -> None:
    """Raises typer.Exit with code 5 when they differ, even in a hidden value."""
    old, new = _content(before), _content(after)
    for name in hidden:  # two values that are both shown as *** would hide that they differ
        new["env"][name] = f"{MASK} (another value)"
    wires = [revision.wire if before.wire != after.wire else {} for revision in (before, after)]
    sides = zip((before, after), (old, new), wires, strict=True)
    old_lines, new_lines = (_yaml(view, *side).splitlines() for side in sides)
    differs = old != new or before.wire != after.wire
    lines = (
        list(difflib.unified_diff(old_lines, new_lines, before.name, after.name, lineterm="", n=1)) if differs else []
    )
    if as_json:
        print_json({"differs": differs, "diff": "".join(f"{line}\n" for line in lines)})
    else:
        print_diff(lines)
    if differs:
        raise typer.Exit(ExitCode.DIFFERENT)


def _content(revision: RevisionView) -> dict[str, Any]:
    """The content of the revision without defaults; the stored form where this release cannot read it."""
    spec = stored_spec(json.dumps(revision.spec))
    if spec.unreadable:
        return revision.spec
    content = spec.spec.model_dump(mode="json", exclude_defaults=True)
    # without it the folder of the file would count
    return {"working_directory": None, **content} if spec.spec.runtime == "process" else content


def _yaml(
    view: DeploymentView, revision: RevisionView, content: dict[str, Any], wire: Mapping[str, Any] | None = None
) -> str:
    """The YAML of a file. `wire`: the part of its `traffic` that belongs to the revision, where that is shown."""
    traffic = {"traffic": dict(wire)} if wire else {}
    document = {"deployment": view.name, "revision": {"name": revision.name, **content}, **traffic}
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=1000)
