"""What the log tells of commands that came as messages."""

from typing import Any

import pytest
from structlog.testing import capture_logs

from tasks.command_tasks import log_answer

PAYLOAD = {"request_id": "7", "deployment": "web", "revision": "v2", "actor": "alice", "reason": "sale"}
WHERE = {"command": "rollway.activate_revision", "deployment": "web", "revision": "v2", "request_id": "7"}


def told(given: dict[str, Any], answer: dict[str, Any], task: str = "rollway.activate_revision") -> dict[str, Any]:
    with capture_logs() as lines:
        log_answer(task, given, answer)
    (line,) = lines
    return dict(line)


def done(*, repeated: bool = False, **result: object) -> dict[str, Any]:
    return {"ok": True, "result": {"deployment": "web", **result}, "repeated": repeated}


def test_a_command_is_told_with_who_wanted_it_why_and_the_rollout_that_it_began() -> None:
    assert told({"payload": PAYLOAD}, done(rollout_id="r-1", version=3)) == {
        "event": "asked",
        "log_level": "info",
        **WHERE,
        "rollout": "r-1",
        "actor": "alice",
        "reason": "sale",
    }


def test_a_refused_command_is_told_with_its_code_and_the_sentence_that_its_sender_got() -> None:
    refused = {"ok": False, "error": {"code": "stale_version", "message": "web is at version 4", "detail": {}}}
    assert told({"payload": PAYLOAD}, refused) == {
        "event": "refused",
        "log_level": "info",
        **WHERE,
        "rollout": None,
        "actor": "alice",
        "code": "stale_version",
        "reason": "web is at version 4",
    }


def test_of_a_signed_command_the_signer_is_told() -> None:
    line = told({"payload": '{"deployment": "web", "actor": "eve"}', "signature": "x", "sender": "ci"}, done())
    assert (line["actor"], line["deployment"]) == ("ci", "web")


@pytest.mark.parametrize(
    ("answer", "task"),
    [
        (done(repeated=True), "rollway.scale"),
        (done(already=True), "rollway.pause"),
        (done(applied=False), "rollway.report_route"),
        (done(), "rollway.push_metric"),
    ],
)
def test_what_changes_nothing_is_told_to_those_who_debug(answer: dict[str, Any], task: str) -> None:
    assert told({"payload": PAYLOAD}, answer, task)["log_level"] == "debug"
