"""Finds the subject of a plan: an activation by name, a file, or the rest of a rollout under way."""

import random
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Any, Self

import typer
import yaml

from api.people.paths import DEPLOYMENT
from cli.apply import documents_asked, to_apply
from cli.client import Reader, build, deployment_named, revision_shown
from cli.terminal.exits import UsageError
from db.views.planning_views import Foreseeable, LearnedView, planned_activation, planned_rest
from domain.cycle.recording import inputs_from_json
from domain.planning.plan_input import Subject
from domain.planning.replica_timings import Timings
from domain.planning.simulator import Draw
from domain.planning.what_if import Supposing, hypothetical


@dataclass(frozen=True, slots=True)
class AskedAhead:
    """One deployment to plan for at the database's time `now`; revisions by name, empty where there is none.

    `notes`: what of its document may not be meant so.
    """

    name: str
    from_revision: str
    to_revision: str
    subject: Subject
    timings: Timings
    now: datetime
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """E.g. "web: v1 → v2, 3 replicas, rolling_update"."""
        moves = f"{self.from_revision} → {self.to_revision}" if self.from_revision else self.to_revision
        deployment = self.subject.deployment
        how = f", {deployment.rollout.policy.strategy}" if deployment.rollout else ""
        return f"{self.name}: {moves or 'no revision'}, {deployment.desired_replicas} replicas{how}"

    def supposing(self, supposing: Supposing) -> Self:
        deployment = hypothetical(self.subject.deployment, supposing, self.now)
        return replace(self, subject=replace(self.subject, deployment=deployment))

    def chance(self) -> Draw:
        """A random generator seeded by the question, so that the answer is the same each time."""
        return random.Random(f"{self.name} {self.to_revision}").random  # noqa: S311  (nobody is to be kept out)


Otherwise = Annotated[
    list[str] | None,
    typer.Option(
        "--with",
        metavar="NAME=VALUE",
        help="Suppose another setting, such as max_surge=2; or replicas=5, strategy=recreate, failures=3.",
        show_default=False,
    ),
]


def asked_for(
    reader: Reader, deployment: str | None, revision: str | None, file: str | None, otherwise: list[str] | None
) -> list[AskedAhead]:
    """The subjects that the arguments name. Raises UsageError, and the refusals of the change itself."""
    supposing = Supposing.of(_settings(otherwise)) if otherwise else None
    questions = _as_it_is(reader, deployment, revision, file)
    return [question.supposing(supposing) for question in questions] if supposing else questions


def _settings(words: list[str]) -> dict[str, Any]:
    """E.g. ["max_surge=2", "pacing=wave"]; values as YAML reads them."""
    settings = {}
    for text in words:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise UsageError(f"--with must be NAME=VALUE, such as max_surge=2, not {text!r}")
        try:
            settings[name] = yaml.safe_load(value)
        except yaml.YAMLError:
            raise UsageError(f"--with {name}: {value!r} is no value; put text in quotes") from None
    return settings


def _as_it_is(reader: Reader, deployment: str | None, revision: str | None, file: str | None) -> list[AskedAhead]:
    if file is not None:
        if deployment is not None:
            raise UsageError("give either --file, or the name of a deployment and of a revision: not both")
        command = to_apply(file)
        return [_of_file(document) for document in reader.ask("/v1/apply/ahead", **documents_asked(command))["items"]]
    if deployment is None:
        raise UsageError("name a deployment and a revision, or a file with --file")
    return [_of_name(reader, deployment, revision)]


def _of_name(reader: Reader, name: str, revision: str | None) -> AskedAhead:
    view = deployment_named(reader, name)
    base = Foreseeable.of(view, reader.view(LearnedView, f"{DEPLOYMENT}/learned", name))
    to = revision or view.deploying_revision or view.current_revision or ""
    row = revision_shown(reader, name, to) if to else None
    planned = planned_activation(view, base, row, revision) if revision else planned_rest(base, row)
    before = view.current_revision or ""
    return AskedAhead(name, before if before != to else "", to, planned.subject, planned.timings, planned.now)


def _of_file(document: dict[str, Any]) -> AskedAhead:
    deployment, now = inputs_from_json(document["inputs"])
    subject = Subject(deployment, document["has_health_check"])
    moves = (document["from_revision"], document["to_revision"])
    notes = tuple(document.get("notes", ()))  # the server may be older
    return AskedAhead(document["deployment"], *moves, subject, build(Timings, document["learned"]), now, notes)
