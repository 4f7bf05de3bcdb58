"""What is kept of a rollout: its steps, which can be decided again, and its timeline."""

from sqlalchemy import Engine

from domain.cycle.recording import inputs_from_json
from tests.support.pictures.pictures import PROVISIONING, happens
from tests.support.rows.deployments import ask, make_deployment, mark, read, snapshot, start_all
from tests.support.rows.rows import history, steps
from tests.support.workers.coordinators import coordinator_without_redis, handler_for, run_until_quiet


def test_each_step_can_be_decided_again_from_what_was_kept(engine: Engine) -> None:
    make_deployment(engine)
    ask(engine, "activate_revision", deployment="web", revision="v2")
    coordinator = coordinator_without_redis(engine)
    while run_until_quiet(coordinator):
        start_all(engine)
    replayed = []
    for step in steps(engine):
        deployment, now = inputs_from_json(step["inputs"])
        decision = handler_for(deployment.status).decide(deployment, now)
        assert decision.reason == step["decision"]["reason"]
        replayed.append(happens(deployment, decision))
    assert replayed == ["create 1, drain ■"] * 3 + ["completed"]


def test_the_swap_and_ready_are_one_transaction(engine: Engine) -> None:
    made = make_deployment(engine, "|■■■", status=PROVISIONING)
    coordinator_without_redis(engine).process_chunk(handler_for(PROVISIONING))
    (row,) = read(
        engine,
        """
        SELECT d.lifecycle, d.current_revision_id, o.outcome, d.xmin::text = o.xmin::text AS with_rollout,
               d.xmin::text = s.xmin::text AS with_step, d.xmin::text = h.xmin::text AS with_history
          FROM deployments d JOIN rollouts o ON o.deployment_id = d.id JOIN rollout_steps s ON s.rollout_id = o.id
          JOIN deployment_history h ON h.id = d.history_id
        """,
    )
    assert (row["lifecycle"], row["current_revision_id"], row["outcome"]) == ("ready", made.v2, "completed")
    assert (row["with_rollout"], row["with_step"], row["with_history"]) == (True, True, True)


def test_the_timeline_counts_what_repeats_and_a_wait_writes_nothing(engine: Engine) -> None:
    made = make_deployment(engine)
    ask(engine, "activate_revision", deployment="web", revision="v2")
    coordinator = coordinator_without_redis(engine)
    while snapshot(engine, made.id).status == PROVISIONING:
        run_until_quiet(coordinator)
        mark(engine, made.id)
        coordinator.process_chunk(handler_for(PROVISIONING))  # a wait
        start_all(engine)
    told = [(row["phase"], row["result"], row["attempts"]) for row in history(engine)]
    assert told == [
        ("activate", "asked", 1),
        ("deploying_provisioning", "need_retry", 3),
        ("deploying_provisioning", "success", 1),
    ]
    merged = history(engine)[1]
    assert merged["lasted"].total_seconds() > 0
    assert merged["message"].startswith("creating 1 new (3 live + 1 ≤ 4)")


def test_two_rollouts_do_not_share_a_record(engine: Engine) -> None:
    make_deployment(engine)
    coordinator = coordinator_without_redis(engine)
    for revision in ("v2", "v1"):
        ask(engine, "activate_revision", deployment="web", revision=revision)
        while run_until_quiet(coordinator):
            start_all(engine)
    moved = [row for row in history(engine) if row["result"] == "need_retry"]
    assert [row["attempts"] for row in moved] == [3, 3]
    assert len({row["rollout_id"] for row in moved}) == 2
