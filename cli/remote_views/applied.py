"""Documents that nobody has applied yet, over HTTP."""

from typing import Any

from cli.remote import Remote
from cli.remote_views.asking import made
from db.commands.apply.ahead import AppliedAhead
from db.commands.apply.difference import DocumentDifference
from db.views.ahead.planned import Planned
from domain.commands.apply import Apply
from domain.cycle.recording import inputs_from_json
from domain.foresight.plan.subject import Subject
from domain.foresight.rehearsal.learned import Learned


def differences(remote: Remote, apply: Apply) -> list[DocumentDifference]:
    """What of the documents is stored otherwise."""
    return [made(DocumentDifference, found) for found in _ask(remote, "difference", apply)]


def applied_ahead(remote: Remote, apply: Apply) -> list[AppliedAhead]:
    """Each deployment as applying its document would leave it."""
    return [_ahead(found) for found in _ask(remote, "ahead", apply)]


def _ask(remote: Remote, what: str, apply: Apply) -> list[dict[str, Any]]:
    asked = apply.model_dump(mode="json", include={"documents", "activate", "supersede"})
    found: list[dict[str, Any]] = remote.ask("POST", f"/v1/apply/{what}", json=asked)["items"]
    return found


def _ahead(found: dict[str, Any]) -> AppliedAhead:
    deployment, now = inputs_from_json(found["inputs"])
    planned = Planned(Subject(deployment, found["has_health_check"]), made(Learned, found["learned"]), now)
    return AppliedAhead(
        found["deployment"], found["from_revision"], found["to_revision"], tuple(found["would"]), planned
    )
