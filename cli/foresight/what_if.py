"""`rollway what-if`."""

import json
import random
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from cli.foresight.plan import Deployment
from cli.options import AsJson
from cli.servers import Reader
from cli.show.plan import plan_page
from cli.terminal.exits import UsageError
from cli.terminal.output import print_json, printer
from db.views.ahead.foresight import Foreseeable, foreseeable
from db.views.deployments import deployment_named
from domain.foresight.plan.foreseen import plan
from domain.foresight.plan.subject import Subject
from domain.foresight.rehearsal.learned import Learned
from domain.foresight.snapshot import AT, parse_snapshot
from domain.foresight.what_if import Answer, Supposing, supposed
from domain.foresight.what_if import what_if as decide
from domain.model.deployment import Deployment as Snapshot
from domain.words.errors import InvalidInputError

_MOST_BYTES = 10_000_000


def what_if(
    *,
    deployment: Deployment = None,
    file: Annotated[
        str | None,
        typer.Option("--file", "-f", metavar="FILE", help="A snapshot as JSON; - reads standard input."),
    ] = None,
    desired: Annotated[
        int | None, typer.Option("--desired", metavar="N", min=0, help="So many replicas wanted.", show_default=False)
    ] = None,
    strategy: Annotated[
        str | None, typer.Option("--strategy", metavar="NAME", help="Another strategy.", show_default=False)
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A setting of the strategy, such as max_surge=2."),
    ] = None,
    failures: Annotated[
        int, typer.Option("--failures", metavar="K", min=0, max=10_000, help="So many new replicas more fail now.")
    ] = 0,
    as_json: AsJson = False,
) -> None:
    """Ask what would be decided if something were otherwise. Touches nothing.

    Of a rollout under way, by the name of its deployment, or of a snapshot as JSON, whose answer is JSON:

    \b
        {"desired": 3, "strategy": "rolling_update", "spec": {"max_surge": 1},
         "routes": [{"rev": "old", "status": "healthy", "traffic": "active", "age_s": 12}]}

    The answer names routes by their place in the list, counted from 0.
    """  # noqa: D301  (\b must be the character)
    if (deployment is None) == (file is None):
        raise UsageError("give the name of a deployment, or a snapshot with --file: one of the two")
    supposing = Supposing(desired, strategy, _settings(settings or []), failures)
    known = _snapshot(file) if file is not None else _live(str(deployment))
    otherwise = supposed(known.deployment, supposing, known.now)
    answer = decide(otherwise, known.now)
    if as_json or file is not None:
        return print_json(answer.as_json())
    return _print(otherwise, answer, known)


def _live(name: str) -> Foreseeable:
    with Reader() as reader:
        return reader.read(foreseeable, reader.read(deployment_named, name))


def _snapshot(file: str) -> Foreseeable:
    shown = "standard input" if file == "-" else file
    try:
        text = sys.stdin.read(_MOST_BYTES) if file == "-" else Path(file).read_text(encoding="utf-8")
        return Foreseeable(parse_snapshot(json.loads(text)), Learned(), AT)
    except OSError as error:
        raise InvalidInputError(f"{shown}: cannot be read: {error.strerror}", file=shown) from None
    except (ValueError, RecursionError) as error:
        where = f": line {error.lineno}, column {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
        raise InvalidInputError(f"{shown}: is no JSON{where}", file=shown) from None


def _settings(given: list[str]) -> dict[str, Any]:
    """E.g. ["max_surge=2", "pacing=wave"]; values as YAML reads them."""
    settings = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise UsageError(f"--set must be NAME=VALUE, such as max_surge=2, not {text!r}")
        try:
            settings[name] = yaml.safe_load(value)
        except yaml.YAMLError:
            raise UsageError(f"--set {name}: {value!r} is no value; put text in quotes") from None
    return settings


def _print(otherwise: Snapshot, answer: Answer, known: Foreseeable) -> None:
    console = printer()
    routes = otherwise.routes
    console.print(f"{otherwise.name}: {answer.outcome.replace('_', ' ')}: {answer.why}")
    if answer.create:
        console.print(f"  create {answer.create}")
    for word, places in (("drain", answer.drain), ("promote", answer.promote), ("park", answer.park)):
        if places:
            console.print(f"  {word} {', '.join(routes[place].id.hex[-8:] for place in places)}")
    follows = plan(Subject(otherwise), known.now, known.learned, random.Random(otherwise.name).random)  # noqa: S311
    console.print(plan_page("and then, while nothing fails:", follows), soft_wrap=False)
