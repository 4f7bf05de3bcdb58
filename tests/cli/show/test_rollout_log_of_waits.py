"""A wait of which only the numbers change is no new line of the film; and what `rollway status` says of a policy."""

import io
from dataclasses import replace

import pytest
from rich.console import Console
from sqlalchemy import Engine

from cli.show.rollout_log import RolloutLog
from cli.show.status import policy_words
from db.connection.transactions import transaction
from db.views.deployment_views import deployment_named
from db.views.route_views import FailingStart
from db.views.timeline import progress_of
from domain.strategies.builtin import parse_policy
from tests.support.pictures.pictures import PROVISIONING
from tests.support.rows.deployments import make_deployment


@pytest.mark.parametrize(
    ("second", "is_new"),
    [
        ("waiting: canary 0 of 1,063 failed; 240 answers more, some 4 min", False),
        ("waiting: 2 of 3 ready", True),
    ],
)
def test_a_wait_that_counts_on_is_one_line(engine: Engine, second: str, is_new: bool) -> None:  # noqa: FBT001
    make_deployment(engine, "■■|◇", status=PROVISIONING)
    with transaction(engine) as connection:
        view = deployment_named(connection, "web")
    film = RolloutLog(Console(file=io.StringIO(), width=120))
    for reason in ("waiting: canary 0 of 62 failed; 301 answers more, some 5 min", second):
        film.end(replace(view, reason=reason))
    assert len(film.cycles) == 1 + is_new


def test_a_rollout_says_why_a_start_failed_before_it_goes_back_and_once(engine: Engine) -> None:
    made = make_deployment(engine, "■■|✗", status=PROVISIONING)
    with transaction(engine) as connection:
        rollout_id = deployment_named(connection, "web").rollout_id
        progress = progress_of(connection, made.id, rollout_id, 0)
    said = io.StringIO()
    film = RolloutLog(Console(file=said, width=120), rollout_id=rollout_id)
    for count in (1, 2, 2):
        film.show(replace(progress, failing=FailingStart("v2", count, "exit code 3", has_come_up=False)))
    film.show(replace(progress, failing=FailingStart("v1", 3, "of before", has_come_up=True)))
    assert said.getvalue().count("! a start of v2 failed: exit code 3") == 1
    assert "of before" not in said.getvalue()


def test_a_policy_is_said_in_words() -> None:
    spec = {"steps": ["5%", "50%"], "judge": {"errors": {"allowed": "2%"}}}
    said = policy_words(parse_policy({"strategy": "canary", "spec": spec}).as_json())
    assert said.startswith("canary: ")
    assert "→" in said
    assert "judge (errors (" in said
    assert "allowed 2%" in said
    assert not set("{}[]'") & set(said)
    assert "None" not in said
