"""Why a deployment waits, with what the worker that looks next will know of it."""

from functools import partial

from sqlalchemy import Engine

from db.audit.explanations import why_shown
from db.connection.transactions import database_now, in_transaction, transaction
from db.proxies.recorded_answers import record_interval
from db.views.deployment_views import deployment_named
from db.views.planning_views import foreseeable
from domain.handlers.dispatch import cycle
from domain.model.answer_counts import Answers, Interval
from tests.support.pictures.pictures import PROVISIONING
from tests.support.rows.deployments import Made, make_deployment, write

JUDGED = {"strategy": "canary", "spec": {"steps": ["5%", "50%"], "judge": {}}}


def judged_canary(engine: Engine) -> Made:
    made = make_deployment(engine, "■■■|■", n=3, status=PROVISIONING, policy=JUDGED)
    weigh = "UPDATE rollouts SET weight = 500, stage = 1, weight_known_at = clock_timestamp() WHERE id = %s"
    write(engine, weigh, made.rollout_id)
    return made


def tell(engine: Engine, made: Made, old: Answers, new: Answers) -> None:
    assert made.rollout_id
    with transaction(engine) as connection:
        interval = Interval(1, database_now(connection), 1.0, {made.v1: old, made.v2: new}, 1, 1)
        record_interval(connection, made.rollout_id, interval, {})


def test_why_a_canary_waits_says_what_its_judge_has_seen(engine: Engine) -> None:
    made = judged_canary(engine)
    assert "no proxy has told yet" in in_transaction(engine, partial(why_shown, name="web")).sentence
    tell(engine, made, Answers(90, 0, begun=90), Answers(10, 0, begun=10))
    told = in_transaction(engine, partial(why_shown, name="web"))
    assert "failures, refusals and redirections: none of 10, not decided" in told.sentence


def test_what_would_be_decided_now_is_asked_with_it_too(engine: Engine) -> None:
    tell(engine, judged_canary(engine), Answers(90, 0, begun=90), Answers(10, 8, begun=10))
    known = in_transaction(engine, lambda it: foreseeable(it, deployment_named(it, "web")))
    assert cycle(known.deployment, known.now).reason.startswith("failures: canary 80 % (8 of 10), control none of 90")
