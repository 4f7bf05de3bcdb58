"""What a cycle reads for the judge of a canary, and what it decides from it."""

import json
import math
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from sqlalchemy import Engine

from db.connection.transactions import transaction
from db.cycle.claim import claim_these, load
from db.judge_evidence import evidence_of
from db.proxies.recorded_answers import record_interval
from db.views.rollout_records import EvidenceView, evidence_shown
from db.views.rollout_views import rollouts_by_id
from domain.cycle.recording import inputs_json
from domain.handlers.dispatch import cycle, replay_step
from domain.judge.judge import Found, judge
from domain.judge.judge_spec import Judge
from domain.model.answer_counts import Answers, Copies, Interval
from domain.model.canary import NOTHING_SEEN, Evidence
from domain.model.states import Verdict
from tests.support.pictures.pictures import PROVISIONING
from tests.support.pictures.policies import BASELINE, MIRRORING
from tests.support.pictures.values_within import canary_of, with_canary
from tests.support.rows.deployments import make_deployment, write

JUDGED = {"strategy": "canary", "spec": {"steps": ["5%", "50%"], "judge": {}}}

UP_AT = datetime(2026, 3, 14, tzinfo=UTC)


def test_a_judge_sees_the_answers_of_both_revisions_and_a_harmful_canary_goes_back(engine: Engine) -> None:
    made = make_deployment(engine, "■■■|■", n=3, status=PROVISIONING, policy=JUDGED)
    weigh = "UPDATE rollouts SET weight = 500, stage = 1, weight_known_at = clock_timestamp() WHERE id = %s"
    write(engine, weigh, made.rollout_id)
    write(engine, "UPDATE routes SET healthy_at = %s WHERE revision_id = %s", UP_AT, made.v2)
    assert made.rollout_id
    with transaction(engine) as connection:
        claim = claim_these(connection, [made.id])
        answers = {made.v1: Answers(90, 0, begun=90, refused=7), made.v2: Answers(10, 10, begun=10)}
        quiet, told = (
            Interval(number, claim.now + timedelta(seconds=number), 1.0, of, 1, 2)
            for number, of in ((1, {}), (2, answers))
        )
        for interval in (quiet, told):
            record_interval(connection, made.rollout_id, interval, {})
        (deployment,) = load(connection, claim.deployments)
    assert deployment.rollout
    evidence = (
        Evidence(quiet.at, Answers(), Answers(), 1, 2, youngest_at=UP_AT),
        Evidence(told.at, Answers(10, 10, begun=10), Answers(90, 0, begun=90, refused=7), 1, 2, youngest_at=UP_AT),
    )
    assert deployment.rollout == with_canary(deployment.rollout, evidence=evidence)
    decision = cycle(deployment, claim.now)
    assert decision.verdict is Verdict.GIVE_UP
    assert decision.reason.startswith("failures: canary 100 % (10 of 10), control none of 90, worse (chance below")
    stored = json.loads(inputs_json(deployment, claim.now))
    again = replay_step(stored, "deploying_provisioning")
    assert (again["verdict"], again["reason"]) == ("give_up", decision.reason)


def test_with_a_fresh_baseline_a_judge_compares_with_its_answers_alone(engine: Engine) -> None:
    made = make_deployment(engine, "■■■■|■", n=3, status=PROVISIONING, policy=BASELINE)
    write(engine, "UPDATE rollouts SET weight = 500, stage = 1 WHERE id = %s", made.rollout_id)
    assert made.rollout_id
    with transaction(engine) as connection:
        claim = claim_these(connection, [made.id])
        answers = {
            made.v1: Answers(90, 9, begun=90),
            made.v2: Answers(10, 1, begun=10),
            made.rollout_id: Answers(12, 2, begun=12),
        }
        interval = Interval(1, claim.now, 1.0, answers, 1, 1, copies=Copies(7, 3))
        record_interval(connection, made.rollout_id, interval, {})
        (deployment,) = load(connection, claim.deployments)
    assert deployment.rollout
    evidence = (
        Evidence(claim.now, Answers(10, 1, begun=10), Answers(12, 2, begun=12), 1, 1, Copies(7, 3), old_failed=9),
    )
    assert deployment.rollout == with_canary(deployment.rollout, evidence=evidence)


def test_without_a_judge_nothing_is_read(engine: Engine) -> None:
    policy = {"strategy": "canary", "spec": {"steps": ["5%"]}}
    made = make_deployment(engine, "■|■", n=1, status=PROVISIONING, policy=policy)
    write(engine, "UPDATE rollouts SET weight = 500, stage = 1 WHERE id = %s", made.rollout_id)
    with transaction(engine) as connection:
        (deployment,) = load(connection, claim_these(connection, [made.id]).deployments)
    assert deployment.rollout
    assert canary_of(deployment.rollout).evidence == NOTHING_SEEN


def test_how_the_evidence_came_to_be_is_kept_in_points_ever_fewer(engine: Engine) -> None:
    made = make_deployment(engine, "■■■|■", n=3, status=PROVISIONING, policy=JUDGED)
    write(engine, "UPDATE rollouts SET weight = 500, stage = 1, weight_known_at = %s", UP_AT)
    assert made.rollout_id
    of = {made.v1: Answers(90, 1, begun=90), made.v2: Answers(10, 2, begun=10)}
    for number in range(1, 301):
        interval = Interval(number, UP_AT + timedelta(seconds=number), 1.0, of, 1, 1)
        with transaction(engine) as connection:  # one for all could take longer than Postgres allows
            record_interval(connection, made.rollout_id, interval, {})
    with transaction(engine) as connection:
        shown = evidence_shown(connection, rollouts_by_id(connection, [made.rollout_id])[made.rollout_id])
        first, last = shown.points[0], shown.points[-1]
        assert (first.at, first.weight, first.canary, first.canary_failed) == (UP_AT + timedelta(seconds=1), 500, 10, 2)
        assert (last.canary, last.control) == (last.canary_failed * 5, last.control_failed * 90)
        gaps = [after.at - before.at for before, after in pairwise(shown.points)]
        assert (gaps[0], gaps[-1]) == (timedelta(seconds=1), timedelta(seconds=3))
        assert 150 < len(shown.points) < 250
        reached = next(point for point in shown.points if point.harm >= (shown.harm_limit or math.inf))
        sums = evidence_of(connection, [made.rollout_id])[made.rollout_id]
        found = judge(Judge(), sums, UP_AT, UP_AT + timedelta(seconds=300))
        assert (reached.at < last.at, found.finding, shown.good_limit) == (True, Found.HARM, -math.log(0.05))


def test_without_a_judge_no_point_is_kept(engine: Engine) -> None:
    made = make_deployment(engine, "■■■|■", n=3, status=PROVISIONING, policy=MIRRORING)
    write(engine, "UPDATE rollouts SET weight = 500, stage = 1, weight_known_at = %s", UP_AT)
    assert made.rollout_id
    with transaction(engine) as connection:
        told = Interval(1, UP_AT, 1.0, {made.v2: Answers(10, 2, begun=10)}, 1, 1)
        record_interval(connection, made.rollout_id, told, {})
        shown = evidence_shown(connection, rollouts_by_id(connection, [made.rollout_id])[made.rollout_id])
    assert shown == EvidenceView("control", None, None, [])
