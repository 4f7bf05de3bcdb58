"""Why a deployment waits, with what the worker that looks next will know of it."""

from functools import partial

from sqlalchemy import Engine

from db.audit.shown import why_shown
from db.engine import database_now, in_transaction, transaction
from db.proxies.answers import record_interval
from domain.traffic.answers import Answers, Interval
from tests.support.deployments import make_deployment, write
from tests.support.pictures import PROVISIONING

JUDGED = {"strategy": "canary", "spec": {"steps": ["5%", "50%"], "judge": {}}}


def test_why_a_canary_waits_says_what_its_judge_has_seen(engine: Engine) -> None:
    made = make_deployment(engine, "■■■|■", n=3, status=PROVISIONING, policy=JUDGED)
    weigh = "UPDATE rollouts SET weight = 500, stage = 1, weight_known_at = clock_timestamp() WHERE id = %s"
    write(engine, weigh, made.rollout_id)
    assert "no proxy has told yet" in in_transaction(engine, partial(why_shown, name="web")).sentence
    assert made.rollout_id
    with transaction(engine) as connection:
        answers = {made.v1: Answers(90, 0), made.v2: Answers(10, 0)}
        record_interval(connection, made.rollout_id, Interval(1, database_now(connection), 1.0, answers, 1, 1), {})
    told = in_transaction(engine, partial(why_shown, name="web"))
    assert "canary 0 of 10 failed, control 0 of 90" in told.sentence
