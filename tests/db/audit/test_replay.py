"""What is stored of a step is enough to decide it once more, and to see when the code decides otherwise today."""

import pytest
from sqlalchemy import Engine

from db.audit.step_replay import ReplayReport, replay_pages
from domain.model.decision import Decision, RouteChanges
from domain.model.deployment import Deployment
from domain.text.errors import InvalidInputError
from tests.support.pictures.pictures import PROVISIONING, ROLLING_BACK
from tests.support.pictures.wrong_decisions import DecidesWrongly, drains_everything
from tests.support.rows.deployments import ask, make_deployment, mark, read, snapshot, write
from tests.support.workers.coordinators import coordinator_without_redis, handler_for
from tests.support.worlds.busy_fleet import busy_fleet


def replayed(engine: Engine) -> ReplayReport:
    return sum(replay_pages(engine), ReplayReport())


def test_every_step_of_every_strategy_and_every_way_comes_out_as_it_is_stored(engine: Engine) -> None:
    for _ in busy_fleet(engine, 2):
        pass
    (stored,) = read(engine, "SELECT count(*) AS c, count(DISTINCT (phase, verdict)) AS kinds FROM rollout_steps")
    assert stored["c"] > 150
    assert stored["kinds"] >= 4
    assert replayed(engine) == ReplayReport(stored["c"], 0, ())
    pages = [page.equal for page in replay_pages(engine)]
    assert (len(pages), max(pages)) == (-(-stored["c"] // 200), 200), "no statement reads more than a page"


@pytest.mark.decides_wrongly
@pytest.mark.parametrize(
    ("change", "what"),
    [
        ("decision = jsonb_set(decision, '{verdict}', '\"skipped\"')", "verdict was 'skipped', is now 'need_retry'"),
        ("decision = jsonb_set(decision, '{changes,rollout_specs,0,count}', '2')", "'count': 2"),
        ("inputs = jsonb_set(inputs, '{deployment,desired_replicas}', '4')", "desired_replicas was 3, is now 4"),
    ],
)
def test_a_step_that_does_not_come_out_again_is_told(engine: Engine, change: str, what: str) -> None:
    make_deployment(engine, "■■■|", status=PROVISIONING)
    coordinator_without_redis(engine).process_chunk(handler_for(PROVISIONING))
    write(engine, f"UPDATE rollout_steps SET {change}")
    (differing,) = replayed(engine).differing
    assert (differing.deployment, differing.step_no) == ("web", 1)
    assert what in str(differing)


@pytest.mark.decides_wrongly
def test_a_step_that_another_handler_decided_is_told(engine: Engine) -> None:
    made = make_deployment(engine, "■■■|", status=PROVISIONING)

    def too_careful(deployment: Deployment) -> Decision:
        assert deployment.deploying_revision_id
        return Decision.moved("slowly", RouteChanges.create(deployment.deploying_revision_id, 1))

    coordinator_without_redis(engine).process_chunk(DecidesWrongly(too_careful, made.id))
    (differing,) = replayed(engine).differing
    assert differing.stored["reason"] == "slowly"


def test_what_postgres_refused_to_write_is_no_decision_to_replay(engine: Engine) -> None:
    made = make_deployment(engine, "■■■|", status=PROVISIONING)
    coordinator = coordinator_without_redis(engine)
    for _ in range(5):
        coordinator.process_chunk(DecidesWrongly(drains_everything, made.id))
        mark(engine, made.id)
    assert snapshot(engine, made.id).status == ROLLING_BACK
    assert replayed(engine) == ReplayReport(0, 5, ())


@pytest.mark.decides_wrongly
def test_a_phase_that_no_handler_has_is_an_error(engine: Engine) -> None:
    make_deployment(engine, "■■■|", status=PROVISIONING)
    ask(engine, "abort", deployment="web")
    coordinator_without_redis(engine).process_chunk(handler_for(ROLLING_BACK))
    write(engine, "UPDATE rollout_steps SET phase = 'daydreaming'")
    with pytest.raises(InvalidInputError, match="daydreaming"):
        replayed(engine)
