"""People are told of a revision that has answered nobody yet."""

import re

import pytest
from sqlalchemy import Engine

from db.connection.transactions import in_transaction
from db.views.planning_views import waiting
from domain.planning.wait_explanation import why
from tests.support.pictures.pictures import PROVISIONING
from tests.support.rows.deployments import complete, make_deployment, write

NOT_YET = "not proven yet: v2 has answered"


@pytest.mark.parametrize(
    ("is_done", "count", "in_use", "said"),
    [
        (False, 0, True, ""),
        (False, 7, True, f"{NOT_YET} none of 7 requests, and goes back at 20"),
        (False, None, True, ""),
        (True, 0, False, ""),
        (True, 0, True, f"{NOT_YET} nobody, and goes back at 20, counted for a while more"),
        (True, 1, False, f"{NOT_YET} none of 1 request, and goes back at 20, counted for a while more"),
        (True, None, True, ""),
    ],
)
def test_people_are_told_of_a_revision_that_has_answered_nobody(
    engine: Engine, *, is_done: bool, count: int | None, in_use: bool, said: str
) -> None:
    made = make_deployment(engine, "|■" if is_done else "■|◇", n=1, status=PROVISIONING)
    write(engine, "UPDATE rollouts SET unanswered = %s, in_use = %s", count, in_use)
    if is_done:
        complete(engine, made)
    told = in_transaction(engine, lambda it: waiting(it, made.name))
    assert re.sub("for (1 min|[45][0-9] s) more", "for a while more", told.view.unproven) == said
    assert told.view.said == (told.view.unproven or told.view.why)
    assert told.view.unproven in why(told.deployment, told.now, told.around).sentence


def test_of_two_rollouts_the_last_one_is_told_of(engine: Engine) -> None:
    made = make_deployment(engine, "|■", n=1, status=PROVISIONING)
    write(engine, "UPDATE rollouts SET unanswered = 3")
    complete(engine, made)
    write(
        engine,
        "INSERT INTO rollouts SELECT (jsonb_populate_record(o, jsonb_build_object('id', uuidv7(), 'unanswered', 5, "
        "'started_at', o.started_at + interval '1 s'))).* FROM rollouts o",
    )
    assert "none of 5 requests" in in_transaction(engine, lambda it: waiting(it, made.name)).view.unproven
