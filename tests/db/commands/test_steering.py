"""Steering a rollout: each command in each state either does what it says, or refuses with its own error."""

import pytest
from sqlalchemy import Engine

from domain.cycle.rollout import NoRolloutError
from domain.model.states import DeploymentLifecycleStatus
from domain.steering.rollout_history import NoPreviousRevisionError
from domain.text.errors import RollwayError, WrongStateError
from tests.support.pictures.pictures import DESTROYING, PROVISIONING, READY, ROLLING_BACK
from tests.support.rows.deployments import ROLLING, ask, make_deployment, read, snapshot, write

BLUE_GREEN = {"strategy": "blue_green", "spec": {"auto_promote": False}}


@pytest.mark.parametrize(
    ("status", "policy", "first", "command", "refusal"),
    [
        (PROVISIONING, ROLLING, (), "resume", WrongStateError),
        (PROVISIONING, ROLLING, (), "promote", WrongStateError),
        (ROLLING_BACK, BLUE_GREEN, (), "promote", WrongStateError),
        (PROVISIONING, BLUE_GREEN, ("pause",), "promote", WrongStateError),
        (READY, ROLLING, (), "undo", NoPreviousRevisionError),
        (READY, ROLLING, (), "retry", NoRolloutError),
        (DESTROYING, ROLLING, (), "retry", NoRolloutError),
    ],
)
def test_a_command_out_of_place_is_refused_and_changes_nothing(
    engine: Engine,
    status: DeploymentLifecycleStatus,
    policy: dict[str, object],
    first: tuple[str, ...],
    command: str,
    refusal: type[RollwayError],
) -> None:
    made = make_deployment(engine, "■■|◇" if status.sub_step else "■■■", status=status, policy=policy)
    for earlier in first:
        ask(engine, earlier, deployment=made.name)
    before = snapshot(engine, made.id)
    with pytest.raises(refusal):
        ask(engine, command, deployment=made.name)
    assert snapshot(engine, made.id) == before


@pytest.mark.parametrize(
    ("status", "policy", "command"),
    [
        (PROVISIONING, ROLLING, "pause"),
        (ROLLING_BACK, ROLLING, "pause"),
        (ROLLING_BACK, ROLLING, "abort"),
        (PROVISIONING, BLUE_GREEN, "promote"),
    ],
)
def test_asking_twice_is_no_error_and_says_so(
    engine: Engine, status: DeploymentLifecycleStatus, policy: dict[str, object], command: str
) -> None:
    made = make_deployment(engine, "■■|◇", status=status, policy=policy)
    ask(engine, command, deployment=made.name)
    assert ask(engine, command, deployment=made.name).result["already"] is True


def test_a_pause_stops_the_clock_and_resuming_lets_it_run_again(engine: Engine) -> None:
    made = make_deployment(engine, "■■|◇", status=PROVISIONING)
    ask(engine, "pause", deployment=made.name)
    paused = snapshot(engine, made.id)
    assert paused.paused_at is not None
    assert paused.rollout is not None
    assert paused.rollout.clock_stopped_at is not None
    ask(engine, "resume", deployment=made.name)
    assert snapshot(engine, made.id).paused_at is None


def test_an_abort_says_who_and_why_and_resumes_what_was_paused(engine: Engine) -> None:
    made = make_deployment(engine, "■■|◇", status=PROVISIONING)
    ask(engine, "pause", deployment=made.name)
    ask(engine, "abort", deployment=made.name, actor="mia", reason="too slow")
    after = snapshot(engine, made.id)
    assert (after.status, after.paused_at) == (ROLLING_BACK, None)
    (rollout,) = read(engine, "SELECT back_reason FROM rollouts")
    assert rollout["back_reason"] == "aborted by mia: too slow"


def test_an_undo_that_names_a_revision_takes_the_place_of_the_rollout_under_way(engine: Engine) -> None:
    made = make_deployment(engine, "■■|◇", status=PROVISIONING)
    ask(engine, "add_revision", deployment=made.name, name="v3", spec={"command": ["sleep", "1"]})
    assert ask(engine, "undo", deployment=made.name, revision="v3").result["activation"] == "superseded"
    rollout = snapshot(engine, made.id).rollout
    assert rollout is not None
    assert (rollout.is_undo, rollout.promote_requested) == (True, True)


def test_retrying_what_rolls_back_turns_it_forward_in_a_rollout_of_its_own(engine: Engine) -> None:
    made = make_deployment(engine, "■■|◇", status=ROLLING_BACK)
    assert ask(engine, "retry", deployment=made.name).result["activation"] == "superseded"
    after = snapshot(engine, made.id)
    assert (after.status, after.deploying_revision_id) == (PROVISIONING, made.v2)
    outcomes = read(engine, "SELECT outcome FROM rollouts ORDER BY started_at")
    assert [row["outcome"] for row in outcomes] == ["superseded", None]


@pytest.mark.parametrize("drawn", ["■■", "■■|◇"])
def test_retrying_now_forgets_the_failed_starts_and_looks_at_once(engine: Engine, drawn: str) -> None:
    made = make_deployment(engine, drawn, status=PROVISIONING if "|" in drawn else READY)
    write(
        engine,
        """
        UPDATE deployments SET failed_revision_id = %s, failed_starts = 9, last_failed_at = now(), short_lives = 2,
                               degraded_reason = 'gave up', retry_at = now() + interval '1 h',
                               due_at = now() + interval '9 min'
        """,
        made.v2,
    )
    done = ask(engine, "retry", deployment=made.name, now=True)
    assert (done.result["forgotten"], done.result["already"]) == (9, False)
    after = snapshot(engine, made.id)
    assert (after.start_failures, after.degraded_reason, after.retry_at) == (None, None, None)
    assert read(engine, "SELECT due_at <= clock_timestamp() AS due FROM deployments") == [{"due": True}]
    assert ask(engine, "retry", deployment=made.name, now=True).result["already"]


def test_a_policy_changed_in_the_middle_of_a_rollout_holds_for_the_next_one(engine: Engine) -> None:
    made = make_deployment(engine, "■■|◇", status=PROVISIONING)
    ask(engine, "set_policy", deployment=made.name, policy=BLUE_GREEN)
    rollout = snapshot(engine, made.id).rollout
    assert rollout is not None
    assert rollout.policy.strategy == "rolling_update"


def test_a_smaller_size_allows_no_fewer_failures_and_leaves_limits_that_only_a_newer_release_reads(
    engine: Engine,
) -> None:
    made = make_deployment(engine, "■■|◇", n=40, status=PROVISIONING)
    ask(engine, "scale", deployment=made.name, desired_replicas=3)
    rollout = snapshot(engine, made.id).rollout
    assert rollout is not None
    assert rollout.policy.limits.failures_allowed(3) == 20
    newer = '{"timeout_seconds": "long"}'
    write(engine, "UPDATE rollouts SET limits = %s", newer)
    ask(engine, "pause", deployment=made.name)
    (stored,) = read(engine, "SELECT limits FROM rollouts")
    assert stored["limits"] == {"timeout_seconds": "long"}


CANARY = {"strategy": "canary", "spec": {"steps": ["75%"]}}


def test_an_abort_of_a_canary_says_how_long_the_starts_of_the_newest_replicas_took(engine: Engine) -> None:
    made = make_deployment(engine, "■|■■■", n=4, status=PROVISIONING, policy=CANARY)
    write(engine, "UPDATE rollouts SET stage = 1, weight = 7500, weight_known_at = now()")
    write(engine, "UPDATE routes SET healthy_at = created_at + interval '20 s'")
    answering = ask(engine, "abort", deployment=made.name, now=True).result["answering"]
    assert answering.endswith("3 more are up, 1 at a time, about 60 s as starts went of late")
