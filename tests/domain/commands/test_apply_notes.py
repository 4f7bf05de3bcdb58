"""What a document says of itself before it is applied: what its author may not have meant."""

from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest

from domain.commands.apply.document import Apply
from domain.commands.apply.expansion import Stored, StoredDeployment, StoredRevision, notes, parts
from domain.strategies.builtin import parse_policy
from domain.traffic.snapshot import USUAL
from tests.support.pictures.pictures import READY, resting

NO_POLICY = "without a policy a new revision replaces the old one without a rollout: no undo, no receipt"
ROLLING = {"strategy": "rolling_update"}
RUNS = StoredDeployment(resting("■", 1, READY), None, "v1", None, ((), USUAL))


def noted(stored: Stored, **document: Any) -> tuple[str, ...]:
    apply = Apply.model_validate({"request_id": "r", "documents": [{"deployment": "web", **document}]})
    return notes(apply.documents[0], stored, apply)


@pytest.mark.parametrize(
    ("revision", "path"),
    [
        ({"command": "python3 http_service.py"}, "http_service.py"),
        ({"command": "venv/bin/gunicorn app:app"}, "venv/bin/gunicorn"),
        ({"command": "node ../web/server.js"}, "../web/server.js"),
        ({"command": "serve ../conf"}, "../conf"),
        ({"command": "serve ./conf"}, "./conf"),
        ({"command": "serve conf/web"}, ""),
        ({"command": "python3 /srv/http_service.py"}, ""),
        ({"command": "python3 -m http.server"}, ""),
        ({"command": "serve --url http://x.example/a.js"}, ""),
        ({"command": "python3 a.py", "working_directory": "/srv"}, ""),
        ({"command": "python3 a.py", "working_directory": None}, ""),
        ({"command": "serve", "working_directory": "app"}, "app"),
        ({"runtime": "docker", "docker": {"image": "web:1"}, "command": "python3 a.py"}, ""),
    ],
)
def test_a_path_without_a_folder_is_doubted_and_no_other(revision: dict[str, Any], path: str) -> None:
    told = f"{path} is a relative path, and a text has no folder: give a full path, or working_directory"
    assert noted(Stored(), revision=revision, policy=ROLLING) == ((told,) if path else ())


@pytest.mark.parametrize(
    ("stored", "document", "told"),
    [
        (Stored(), {}, (NO_POLICY,)),
        (Stored(RUNS), {}, (NO_POLICY,)),
        (Stored(), {"policy": ROLLING}, ()),
        (Stored(), {"policy": None}, ()),
        (Stored(replace(RUNS, policy=parse_policy(ROLLING))), {}, ()),
        (Stored(RUNS, StoredRevision(uuid4(), "v1", {})), {}, ()),
    ],
    ids=["new", "a new revision", "with one", "null on purpose", "has one", "the revision is known"],
)
def test_who_names_no_policy_is_told_what_goes_without(stored: Stored, document: dict[str, Any], told: object) -> None:
    assert noted(stored, revision={"command": "serve"}, **document) == told


def test_a_new_deployment_whose_revision_is_not_activated_yet_gets_all_else_at_once() -> None:
    document = {"deployment": "web", "revision": {"command": "serve"}, "traffic": {"hosts": ["a.example"]}}
    apply = Apply.model_validate({"request_id": "r", "documents": [document], "activate": False})
    kinds = [type(part.command).__name__ for part in parts(apply.documents[0], Stored(), apply)]
    assert kinds == ["CreateDeployment", "SetTraffic", "AddRevision"]
