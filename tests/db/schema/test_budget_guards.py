"""Budgets as Postgres sees them: which statements the triggers of db/schema/guards.py refuse, which they let pass."""

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, LiteralString
from uuid import UUID

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg import Connection
from sqlalchemy import Engine

from db.engine import transaction
from domain.changes import Decision, RouteChanges
from domain.errors import RollwayError
from domain.handlers import HANDLERS
from domain.handlers.deploying_provisioning import DeployingProvisioningHandler
from domain.model import Deployment, DeploymentLifecycleStatus, RouteStatus, TrafficStatus
from domain.strategies.buckets import ids
from domain.strategies.budget import Budget, resting_budget, surge_budget
from tests.support.coordinators import coordinator_without_redis
from tests.support.deployments import Made, ask, become, drawn, make_deployment, read, snapshot, start_all, write
from tests.support.pictures import DESTROYING, PENDING, PROVISIONING, READY, ROLLING_BACK, SCALING

CEILING, FLOOR = "RW001", "RW002"
CONSTRAINTS = {CEILING: "routes_within_ceiling", FLOOR: "routes_above_floor"}
BLUE_GREEN = {"strategy": "blue_green", "spec": {"auto_promote": True}}
PARKING = {"strategy": "blue_green", "spec": {"auto_promote": True, "scale_down_delay_seconds": 3600}}
RECREATE = {"strategy": "recreate"}
CONTINUOUS = {
    "strategy": "rolling_update",
    "spec": {"max_surge": "50%", "max_unavailable": "25%", "pacing": "continuous"},
}
ROLLING = {"strategy": "rolling_update", "spec": {"max_surge": 1, "max_unavailable": 1}}
COUNTING = {"strategy": "rolling_update", "spec": {"max_surge": 1, "max_unavailable": 1, "count_stopping": True}}
COUNTING_BLUE_GREEN = {"strategy": "blue_green", "spec": {"auto_promote": True, "count_stopping": True}}

CREATE = """
    INSERT INTO routes (deployment_id, revision_id, traffic_status)
    SELECT %(id)s, %(v2)s, 'active' FROM generate_series(1, %(count)s)
"""
CREATE_PARKED = """
    INSERT INTO routes (deployment_id, revision_id, traffic_status, status, started_at, parked_until)
    SELECT %(id)s, %(v2)s, 'inactive', 'healthy', now(), now() FROM generate_series(1, %(count)s)
"""
CREATE_GONE = """
    INSERT INTO routes (deployment_id, revision_id, traffic_status, status, stopped_at)
    SELECT %(id)s, %(v2)s, 'inactive', 'terminated', now() FROM generate_series(1, %(count)s)
"""
DRAIN = """
    UPDATE routes SET status = 'terminating', traffic_status = 'inactive', drain_started_at = now()
     WHERE id = ANY(%(ids)s)
"""
STOP_AT_ONCE = """
    UPDATE routes SET status = 'terminated', traffic_status = 'inactive', stopped_at = now() WHERE id = ANY(%(ids)s)
"""
PARK = "UPDATE routes SET traffic_status = 'inactive', parked_until = now() WHERE id = ANY(%(ids)s)"
LEAVE_TRAFFIC = "UPDATE routes SET traffic_status = 'inactive' WHERE id = ANY(%(ids)s)"
FALL_ILL = "UPDATE routes SET status = 'unhealthy', started_at = now() WHERE id = ANY(%(ids)s)"
FAIL = (
    "UPDATE routes SET status = 'failed', traffic_status = 'inactive', status_reason = 'exit 1' WHERE id = ANY(%(ids)s)"
)
RECOVER = "UPDATE routes SET status = 'healthy', traffic_status = 'active', started_at = now() WHERE id = ANY(%(ids)s)"


@dataclass(frozen=True)
class Case:
    """`of`: the places in the picture that the statement is about, or how many it creates."""

    says: str
    picture: str
    statement: LiteralString
    of: int | Sequence[int]
    refused: str | None
    n: int = 3
    status: DeploymentLifecycleStatus = PROVISIONING
    policy: Any = None


CASES = [
    Case("n + surge", "■■■|", CREATE, 1, None),
    Case("one above n + surge", "■■■|", CREATE, 2, CEILING),
    Case("a state nobody counts would be created for ever", "▲△◇■|", CREATE, 1, CEILING),
    Case("those on their way out leave room", "■■~~~|✗✗", CREATE, 2, None),
    Case("those on their way out leave none where they count", "■■~~~|✗✗", CREATE, 1, CEILING, policy=COUNTING),
    Case("up to n + surge with those on their way out", "■■~|", CREATE, 1, None, policy=COUNTING),
    Case("on the way back they count too", "■■|~~", CREATE, 1, CEILING, status=ROLLING_BACK, policy=COUNTING),
    Case("at rest they count too", "■■~~", CREATE, 1, CEILING, status=SCALING, policy=COUNTING),
    Case("at rest as far as n + 1", "■■~", CREATE, 1, None, status=SCALING, policy=COUNTING),
    Case("at rest they do not count otherwise", "■■~~", CREATE, 1, None, status=SCALING),
    Case("where they count, parked ones do not", "■■■~|", CREATE_PARKED, 3, None, policy=COUNTING),
    Case("above the ceiling already, one more", "■■■|■■■", CREATE, 1, CEILING),
    Case("above the ceiling already, one that is gone", "■■■|■■■", CREATE_GONE, 1, None),
    Case("parked ones are not counted", "■■■|■", CREATE_PARKED, 3, None),
    Case("on the way back too", "■■■|", CREATE, 2, CEILING, status=ROLLING_BACK),
    Case("n + 1 at rest", "■■■", CREATE, 1, None, status=SCALING),
    Case("n + 2 at rest", "■■■", CREATE, 2, CEILING, status=SCALING),
    Case("ready is at rest", "■■■", CREATE, 2, CEILING, status=READY),
    Case("the first start", "", CREATE, 3, None, status=SCALING),
    Case("a first start twice", "◇◇◇", CREATE, 3, CEILING, status=SCALING),
    Case("without a revision there is nothing to start", "", CREATE, 5, CEILING, status=PENDING),
    Case("from 3 to 6", "■■■", CREATE, 3, None, n=6, status=SCALING),
    Case("for one that wants none", "", CREATE, 2, CEILING, n=0, status=SCALING),
    Case("what is destroyed starts nothing", "", CREATE, 1, CEILING, status=DESTROYING),
    Case("a whole green set", "■■■|", CREATE, 3, None, policy=BLUE_GREEN),
    Case("more than a green set", "■■■|", CREATE, 4, CEILING, policy=BLUE_GREEN),
    Case("a second green while the first stops", "■■■|□□~", CREATE, 1, CEILING, policy=COUNTING_BLUE_GREEN),
    Case("a second green set", "■■■|◇◇◇", CREATE, 3, CEILING, policy=BLUE_GREEN),
    Case("beside what must not run twice", "■■■|", CREATE, 1, CEILING, policy=RECREATE),
    Case("while what must not run twice stops", "~~~|", CREATE, 1, CEILING, policy=RECREATE),
    Case("after what must not run twice", "|", CREATE, 3, None, policy=RECREATE),
    Case("down to n - unavailable", "■■■|", DRAIN, [0], None),
    Case("one below n - unavailable", "■■■|", DRAIN, [0, 1], FLOOR),
    Case("all", "■■■|", DRAIN, [0, 1, 2], FLOOR),
    Case("all, on the way back", "|■■■", DRAIN, [0, 1, 2], FLOOR, status=ROLLING_BACK),
    Case("all, skipping the drain", "■■■|", STOP_AT_ONCE, [0, 1, 2], FLOOR),
    Case("all to the side", "■■■|", PARK, [0, 1, 2], FLOOR),
    Case("all out of traffic", "■■■|", LEAVE_TRAFFIC, [0, 1, 2], FLOOR),
    Case("all old ones while the new start", "■■■|◇", DRAIN, [0, 1, 2], FLOOR),
    Case("the old ones, new ones being healthy", "■■|■■", DRAIN, [0, 1], None),
    Case("sick ones, too few being healthy", "■▲▲|", DRAIN, [1, 2], None),
    Case("the last healthy one with the sick ones", "■▲▲|", DRAIN, [0, 1, 2], FLOOR),
    Case("starting ones, too few being healthy", "■|◇◇", DRAIN, [1, 2], None),
    Case("idle ones, too few serving", "■□□|", DRAIN, [1, 2], None),
    Case("idle ones do not make up for serving ones", "■■■|□□□", DRAIN, [0, 1, 2], FLOOR),
    Case("whatever falls ill", "■■■|", FALL_ILL, [0, 1, 2], None),
    Case("whatever fails", "■■■|", FAIL, [0, 1, 2], None),
    Case("whatever recovers, above the ceiling", "■■■|▲▲▲", RECOVER, [3, 4, 5], None),
    Case("none below n at rest", "■■■", DRAIN, [0], FLOOR, status=SCALING),
    Case("none below n when ready", "■■■", PARK, [0], FLOOR, status=READY),
    Case("from 5 to 3", "■■■■■", DRAIN, [0, 1], None, status=SCALING),
    Case("from 5 to 2 when 3 are wanted", "■■■■■", DRAIN, [0, 1, 2], FLOOR, status=SCALING),
    Case("from 3 to 0", "■■■", DRAIN, [0, 1, 2], None, n=0, status=SCALING),
    Case("everything of what is destroyed", "■■■", DRAIN, [0, 1, 2], None, status=DESTROYING),
    Case("blue before green is promoted", "■■■|□□□", DRAIN, [0, 1, 2], FLOOR, policy=BLUE_GREEN),
    Case("one blue of three", "■■■|□□□", DRAIN, [0], FLOOR, policy=BLUE_GREEN),
    Case("blue after green is promoted", "■■■|■■■", DRAIN, [0, 1, 2], None, policy=BLUE_GREEN),
    Case("green on the way back", "■■■|□□□", DRAIN, [3, 4, 5], None, status=ROLLING_BACK, policy=BLUE_GREEN),
    Case("everything that must not run twice", "■■■|", DRAIN, [0, 1, 2], None, policy=RECREATE),
]


def code_of(connection: Connection, statement: LiteralString, made: Made, of: int | Sequence[int]) -> str | None:
    """The code with which Postgres refuses the statement, if it does; the transaction can go on."""
    places = [of] if isinstance(of, int) else of
    parameters: dict[str, Any] = {"id": made.id, "v2": made.v2, "count": places[0] if places else 0}
    if "%(ids)s" in statement:
        parameters["ids"] = [made.routes[place] for place in places]
    try:
        with connection.transaction():
            connection.execute(statement, parameters)
    except psycopg.DatabaseError as refused:
        if refused.diag.constraint_name != CONSTRAINTS.get(str(refused.sqlstate)):
            raise
        return refused.sqlstate
    return None


def test_a_statement_is_refused_for_what_it_does_and_not_for_what_it_finds(
    engine: Engine, subtests: pytest.Subtests
) -> None:
    for number, case in enumerate(CASES):
        with subtests.test(f"{case.says}: {case.picture}"):
            made = make_deployment(
                engine,
                case.picture,
                name=f"web-{number}",
                n=case.n,
                status=case.status,
                policy=case.policy or ROLLING,
            )
            with transaction(engine) as connection:
                assert code_of(connection, case.statement, made, case.of) == case.refused


def test_a_transaction_that_promotes_first_may_drain_then_and_none_the_other_way_round(engine: Engine) -> None:
    made = make_deployment(engine, "■■■|□□□", status=PROVISIONING, policy=BLUE_GREEN)
    for order, refused in (
        (((RECOVER, [3, 4, 5]), (PARK, [0, 1, 2])), None),
        (((PARK, [0, 1, 2]), (RECOVER, [3])), FLOOR),
    ):
        with transaction(engine) as connection, connection.transaction(force_rollback=True):
            codes = [code_of(connection, statement, made, of) for statement, of in order]
            assert set(codes) - {None} == ({refused} if refused else set())


def test_a_rollout_that_changes_the_size_may_do_what_either_size_needs(engine: Engine) -> None:
    made = make_deployment(engine, "■■■")
    ask(engine, "activate_revision", deployment="web", revision="v2", desired_replicas=6)
    (rollout,) = read(engine, "SELECT ceiling, floor FROM rollouts")
    assert rollout == {"ceiling": 7, "floor": 2}
    with transaction(engine) as connection:
        assert code_of(connection, CREATE, made, 5) == CEILING
        assert code_of(connection, CREATE, made, 4) is None
        assert code_of(connection, DRAIN, made, [0, 1]) == FLOOR


@pytest.mark.parametrize(("n", "ceiling", "floor"), [(5, 8, 3), (1, 6, 1)])
def test_a_blue_green_rollout_has_room_for_both_of_its_sizes(engine: Engine, n: int, ceiling: int, floor: int) -> None:
    """There blue's 3 and green's n; back, blue's 3 twice. The promotion leaves the smaller of both serving."""
    make_deployment(engine, "■■■", policy=BLUE_GREEN)
    ask(engine, "activate_revision", deployment="web", revision="v2", desired_replicas=n)
    assert read(engine, "SELECT ceiling, floor FROM rollouts") == [{"ceiling": ceiling, "floor": floor}]


def test_scaling_in_the_middle_of_a_rollout_moves_its_ceiling_and_floor(engine: Engine) -> None:
    made = make_deployment(engine, "■■■|", status=PROVISIONING)
    ask(engine, "scale", deployment="web", desired_replicas=8)
    assert read(engine, "SELECT ceiling, floor FROM rollouts") == [{"ceiling": 9, "floor": 7}]
    with transaction(engine) as connection:
        assert code_of(connection, CREATE, made, 6) is None
    ask(engine, "scale", deployment="web", desired_replicas=0)
    assert read(engine, "SELECT ceiling, floor FROM rollouts") == [{"ceiling": 1, "floor": 0}]
    with transaction(engine) as connection:
        assert code_of(connection, DRAIN, made, [0, 1, 2]) is None


def test_a_rollout_that_this_release_cannot_read_is_held_to_the_budget_at_rest(engine: Engine) -> None:
    make_deployment(engine, "■■■|", status=PROVISIONING)
    write(engine, "UPDATE rollouts SET spec = spec || '{\"waves\": 7}'")
    ask(engine, "scale", deployment="web", desired_replicas=5)
    assert read(engine, "SELECT ceiling, floor FROM rollouts") == [{"ceiling": 6, "floor": 5}]


def test_somebody_with_psql_is_refused_too_and_told_why(engine: Engine, database: str) -> None:
    make_deployment(engine, "■■■", name="other")
    made = make_deployment(engine, "■■■|■", status=PROVISIONING)
    query = "INSERT INTO routes (deployment_id, revision_id, traffic_status) VALUES (%s, %s, 'active')"
    with psycopg.connect(database) as connection:
        with pytest.raises(psycopg.DatabaseError) as refused, connection.transaction():
            connection.execute(query, (made.id, made.v1))
        assert (refused.value.sqlstate, refused.value.diag.message_primary) == (
            CEILING,
            "web: 5 live replicas are more than the 4 allowed while deploying",
        )
        with pytest.raises(psycopg.DatabaseError) as refused, connection.transaction():
            connection.execute(DRAIN.replace("= ANY(%(ids)s)", "IS NOT NULL"))  # and forgets the deployment's name
        assert (refused.value.sqlstate, refused.value.diag.message_primary) == (
            FLOOR,
            "other: 0 healthy replicas in traffic are fewer than the 3 to keep while ready",
        )
        assert (refused.value.diag.table_name, refused.value.diag.constraint_name) == ("routes", "routes_above_floor")


def test_a_statement_about_many_deployments_names_the_one_that_breaks_the_law(engine: Engine) -> None:
    for number in range(5):
        make_deployment(engine, "■■■|" if number != 3 else "■■■|■", name=f"web-{number}", status=PROVISIONING)
    with pytest.raises(psycopg.DatabaseError, match=r"^web-3: 5 live replicas are more than the 4") as refused:
        write(
            engine,
            "INSERT INTO routes (deployment_id, revision_id, traffic_status)"
            " SELECT id, deploying_revision_id, 'active' FROM deployments",
        )
    assert refused.value.sqlstate == CEILING


# --- any picture, any statement: the trigger and an oracle of a dozen lines agree

SYMBOLS = st.text("■■■□△▲◇✗~", max_size=6)
STATEMENTS = [CREATE, CREATE_PARKED, DRAIN, STOP_AT_ONCE, PARK, LEAVE_TRAFFIC, FALL_ILL, FAIL]
GONE = "✗~"


def verdict(picture: str, statement: LiteralString, of: Sequence[int], budget: Budget) -> str | None:
    symbols = picture.replace("|", "")
    if statement in (CREATE, CREATE_PARKED):
        counted = sum(symbol not in ("✗" if budget.count_stopping else GONE) for symbol in symbols)
        return CEILING if statement == CREATE and of[0] and counted + of[0] > budget.ceiling else None
    taken = sum(symbols[place] == "■" for place in of)
    ours = statement in (DRAIN, STOP_AT_ONCE, PARK, LEAVE_TRAFFIC)
    return FLOOR if ours and taken and symbols.count("■") - taken < budget.keep else None


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), left=SYMBOLS, right=SYMBOLS, n=st.integers(0, 6), s=st.integers(0, 3), u=st.integers(0, 3))
def test_of_any_picture_and_any_statement_the_trigger_says_what_the_law_says(
    module_engine: Engine, data: st.DataObject, left: str, right: str, n: int, s: int, u: int
) -> None:
    status = data.draw(st.sampled_from([PROVISIONING, ROLLING_BACK, SCALING, READY]))
    picture = f"{left}|{right}"
    statement = data.draw(st.sampled_from(STATEMENTS))
    if statement in (CREATE, CREATE_PARKED):
        of = [data.draw(st.integers(0, 5))]
    else:
        places = [place for place, symbol in enumerate(picture.replace("|", "")) if symbol not in GONE]
        of = data.draw(st.lists(st.sampled_from(places), unique=True)) if places else []
    count_stopping = data.draw(st.booleans())
    spec = {"max_surge": s, "max_unavailable": u or int(s == 0), "count_stopping": count_stopping}
    policy = {"strategy": "rolling_update", "spec": spec}
    deploying = status in (PROVISIONING, ROLLING_BACK)
    budget = replace(
        surge_budget(n, s, u or int(s == 0)) if deploying else resting_budget(n), count_stopping=count_stopping
    )
    name = f"web-{read(module_engine, 'SELECT count(*) AS c FROM deployments')[0]['c']}"
    made = make_deployment(module_engine, picture, name=name, n=n, status=status, policy=policy)
    with transaction(module_engine) as connection:
        expected = verdict(picture, statement, of, budget)
        assert code_of(connection, statement, made, of) == expected


# --- a wrong decision of ours

Wrong = Callable[[Deployment], Decision]


@dataclass(frozen=True)
class DecidesWrongly(DeployingProvisioningHandler):
    """Like the real one, but about one deployment it is wrong."""

    wrong: Wrong
    about: UUID

    def decide(self, deployment: Deployment, now: Any) -> Decision:
        return self.wrong(deployment) if deployment.id == self.about else super().decide(deployment, now)


def creates_five_too_many(one: Deployment) -> Decision:
    assert one.deploying_revision_id
    return Decision.moved("more is better", RouteChanges.create(one.deploying_revision_id, 6))


def drains_everything(one: Deployment) -> Decision:
    return Decision.moved("away with it", RouteChanges.drain(ids(one.active_routes)))


def promotes_nothing_and_drains_blue(one: Deployment) -> Decision:
    blue = [route for route in one.active_routes if route.traffic is TrafficStatus.ACTIVE]
    return Decision.success("promoted", RouteChanges.drain(ids(blue)))


def promotes_nothing_and_parks_blue(one: Deployment) -> Decision:
    blue = [route for route in one.active_routes if route.traffic is TrafficStatus.ACTIVE]
    return Decision.success("promoted", RouteChanges.park(ids(blue), one.phase_started_at))


@pytest.mark.decides_wrongly
@pytest.mark.parametrize(
    ("wrong", "policy", "before", "after", "why"),
    [
        (creates_five_too_many, ROLLING, "■■■|", "■■|◇", "9 live replicas are more than the 4 allowed"),
        (drains_everything, ROLLING, "■■■|", "■■|◇", "0 healthy replicas in traffic are fewer than the 2 to keep"),
        (creates_five_too_many, BLUE_GREEN, "■■■|", "■■■|◇◇◇", "9 live replicas are more than the 6 allowed"),
        (drains_everything, BLUE_GREEN, "■■■|□□□", "■■■", "0 healthy replicas in traffic are fewer than the 3 to keep"),
        (promotes_nothing_and_drains_blue, BLUE_GREEN, "■■■|□□□", "■■■", "0 healthy replicas in traffic are fewer"),
        (promotes_nothing_and_parks_blue, PARKING, "■■■|□□□", "□□□|■■■", "0 healthy replicas in traffic are fewer"),
        (creates_five_too_many, RECREATE, "~~~|", "|~~~", "9 live or stopping replicas are more than the 3 allowed"),
        (creates_five_too_many, COUNTING, "■■■|", "■■|◇", "9 live or stopping replicas are more than the 4 allowed"),
    ],
)
def test_a_wrong_decision_is_refused_by_postgres_and_is_an_error_of_that_deployment_alone(
    engine: Engine, wrong: Wrong, policy: Any, before: str, after: str, why: str
) -> None:
    fleet = [
        make_deployment(engine, before, name=f"web-{number}", status=PROVISIONING, policy=policy) for number in range(8)
    ]
    bad = fleet.pop(5)
    was = drawn(engine, bad.id)
    done = coordinator_without_redis(engine).process_chunk(DecidesWrongly(wrong, bad.id))
    assert done.seen == 8
    assert drawn(engine, bad.id) == was
    one = snapshot(engine, bad.id)
    assert (one.status, one.phase_attempts) == (PROVISIONING, 1)
    (row,) = read(engine, "SELECT reason FROM deployments WHERE id = %s", bad.id)
    assert row["reason"].partition(": ")[2].startswith(f"web-5: {why}")
    assert {snapshot(engine, other.id).phase_attempts for other in fleet} == {0}
    if policy is not RECREATE:  # which waits, nothing else to do
        assert {drawn(engine, other.id).replace("|", "") for other in fleet} == {after.replace("|", "")}
    (record,) = read(engine, "SELECT result FROM deployment_history WHERE deployment_id = %s", bad.id)
    assert record["result"] == "error"


@pytest.mark.decides_wrongly
def test_the_last_step_of_a_rollout_is_judged_by_the_budget_of_the_rollout(engine: Engine) -> None:
    made = make_deployment(engine, "|■■■", status=PROVISIONING)

    def completes_and_drains_one(one: Deployment) -> Decision:
        return Decision.success("done", RouteChanges.drain(ids(one.active_routes)[:1]))

    coordinator_without_redis(engine).process_chunk(DecidesWrongly(completes_and_drains_one, made.id))
    assert (snapshot(engine, made.id).status, drawn(engine, made.id)) == (READY, "■■")


# --- and every right one goes through

WAYS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "there": [("activate_revision", {"revision": "v2"})],
    "there and back": [("activate_revision", {"revision": "v2"}), ("activate_revision", {"revision": "v1"})],
    "undone half way": [("activate_revision", {"revision": "v2"}), ("abort", {})],
    "growing": [("activate_revision", {"revision": "v2", "desired_replicas": 6})],
    "growing, undone half way": [("activate_revision", {"revision": "v2", "desired_replicas": 6}), ("abort", {})],
    "shrinking, undone half way": [("activate_revision", {"revision": "v2", "desired_replicas": 1}), ("abort", {})],
    "scaled half way": [
        ("activate_revision", {"revision": "v2"}),
        ("scale", {"desired_replicas": 7}),
        ("scale", {"desired_replicas": 2}),
        ("scale", {"desired_replicas": 0}),
        ("scale", {"desired_replicas": 4}),
    ],
    "superseded half way": [
        ("activate_revision", {"revision": "v2"}),
        ("activate_revision", {"revision": "v3", "supersede": True}),
        ("activate_revision", {"revision": "v1", "supersede": True}),
    ],
    "another policy half way": [
        ("activate_revision", {"revision": "v2"}),
        ("set_policy", {"policy": ROLLING}),
        ("activate_revision", {"revision": "v3", "supersede": True}),
        ("set_policy", {"policy": BLUE_GREEN}),
        ("activate_revision", {"revision": "v2", "supersede": True}),
    ],
    "without a policy": [("set_policy", {"policy": None}), ("activate_revision", {"revision": "v2"})],
    "scaled at rest": [("scale", {"desired_replicas": size}) for size in (6, 5, 1, 0, 3)],
    "destroyed half way": [("activate_revision", {"revision": "v2"}), ("destroy", {})],
}

STOPPED = "UPDATE routes SET status = 'terminated', stopped_at = now() WHERE status = 'terminating'"
POLICIES: dict[str, Any] = {
    "rolling": ROLLING,
    "counting": COUNTING,
    "continuous": CONTINUOUS,
    "blue-green": BLUE_GREEN,
    "counting-blue-green": COUNTING_BLUE_GREEN,
    "parking": PARKING,
    "recreate": RECREATE,
}


def busy_fleet(engine: Engine, cycles: int, weather: random.Random | None = None) -> Iterator[None]:
    """A deployment for each policy and way, all steered at once, `cycles` of everything between two commands.

    It pauses after every chunk, for whoever wants to look. `weather`: replicas fall ill, fail and recover by dice.
    """
    fleet = {}
    for policy, settings_of in POLICIES.items():
        for way, commands in WAYS.items():
            name = f"{policy}-{way}".replace(" ", "-").replace(",", "")
            made = make_deployment(engine, "■■■", name=name, policy=settings_of)
            write(engine, "INSERT INTO revisions (deployment_id, name, spec) VALUES (%s, 'v3', '{}')", made.id)
            fleet[name] = commands
    for number in range(max(map(len, fleet.values()))):
        for name, commands in fleet.items():
            if number < len(commands):
                command, payload = commands[number]
                with suppress(RollwayError):  # where it means nothing, or must wait
                    ask(engine, command, deployment=name, **payload)
        yield from world_goes_on(engine, cycles, weather)
    yield from world_goes_on(engine, 99)


def world_goes_on(engine: Engine, cycles: int, weather: random.Random | None = None) -> Iterator[None]:
    """Everything that can happen happens, so many times, or until nothing moves."""
    coordinator = coordinator_without_redis(engine, chunk=17)
    for _ in range(cycles):
        seen = 0
        for handler in HANDLERS.values():
            while found := coordinator.process_chunk(handler).seen:
                seen += found
                yield
        if not seen and weather is None:
            return
        rain(engine, weather) if weather else start_all(engine)
        write(engine, STOPPED)
        write(engine, "UPDATE deployments SET due_at = now() WHERE lifecycle IN ('scaling', 'deploying', 'destroying')")
        yield


def rain(engine: Engine, dice: random.Random) -> None:
    """Half of the replicas become something; an hour goes by for what waits for time."""
    live = read(engine, "SELECT id FROM routes WHERE status NOT IN ('terminating', 'terminated', 'failed')")
    chosen = [route["id"] for route in dice.sample(live, len(live) // 2)]
    sick, failed = len(chosen) // 5, len(chosen) // 10
    become(engine, RouteStatus.UNHEALTHY, *chosen[:sick])
    become(engine, RouteStatus.FAILED, *chosen[sick : sick + failed])
    become(engine, RouteStatus.HEALTHY, *chosen[sick + failed :])
    write(engine, "UPDATE routes SET status_changed_at = status_changed_at - interval '1 hour'")
    write(engine, "UPDATE deployments SET last_failed_at = last_failed_at - interval '1 hour'")
    write(engine, "UPDATE deployments SET due_at = now() WHERE due_at IS NOT NULL")


@pytest.mark.parametrize("seed", [1, 2])
def test_no_right_decision_is_refused_whatever_the_replicas_do(engine: Engine, seed: int) -> None:
    for _ in busy_fleet(engine, 6, random.Random(seed)):
        assert read(engine, "SELECT message FROM deployment_history WHERE result = 'error'") == []
    (counted,) = read(engine, "SELECT count(*) AS c FROM routes WHERE status = 'failed'")
    assert counted["c"] > 50


@pytest.mark.parametrize("cycles", [1, 3, 99])
def test_no_right_decision_is_refused(engine: Engine, cycles: int) -> None:
    for _ in busy_fleet(engine, cycles):
        assert read(engine, "SELECT message FROM deployment_history WHERE result = 'error'") == []
    ended = read(engine, "SELECT lifecycle, count(*) AS c FROM deployments GROUP BY 1 ORDER BY 1")
    assert ended == [{"lifecycle": "destroyed", "c": 7}, {"lifecycle": "ready", "c": 77}]
