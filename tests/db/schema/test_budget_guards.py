"""Budgets as Postgres sees them: which statements the triggers of migrations/ refuse, which they let pass."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, LiteralString

import psycopg
import pytest
from sqlalchemy import Engine

from db.connection.transactions import transaction
from domain.model.states import DeploymentLifecycleStatus
from tests.support.pictures.pictures import DESTROYING, PENDING, PROVISIONING, READY, ROLLING_BACK, SCALING
from tests.support.pictures.policies import BLUE_GREEN, CANARY, COUNTING, COUNTING_BLUE_GREEN, RECREATE
from tests.support.rows.deployments import ROLLING, make_deployment, write
from tests.support.rows.route_statements import (
    CEILING,
    CREATE,
    CREATE_GONE,
    CREATE_PARKED,
    DRAIN,
    FAIL,
    FALL_ILL,
    FLOOR,
    LEAVE_TRAFFIC,
    PARK,
    RECOVER,
    STOP_AT_ONCE,
    code_of,
)


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


@pytest.mark.parametrize(
    ("picture", "n", "weight", "of", "refused"),
    [
        # at 95 % all three old ones are needed, at two thirds two of them; more may have come up elsewhere
        ("■■■|■", 3, 500, (0,), FLOOR),
        ("■■■|■", 3, 3333, (0,), None),
        ("■■■|■", 3, 3333, (0, 1), FLOOR),
        ("■■■■|■■", 4, 5000, (4,), FLOOR),
        ("■■■■|■■■", 4, 5000, (4,), None),
        # before its first weight and after harm it answers nothing, and is nobody to spare an old one for
        ("■■■|■", 3, 0, (0,), FLOOR),
        ("■■■|■", 3, 0, (3,), None),
        # past all weights all answer alike
        ("■■■|■", 3, None, (0,), None),
        # who does not serve is nobody's to keep, and a side that loses nobody is not looked at
        ("▲■■|■■", 3, 500, (0,), None),
        ("■■▲|■■", 3, 500, (3,), None),
    ],
)
def test_each_side_of_a_canary_keeps_replicas_for_its_share(
    engine: Engine, picture: str, n: int, weight: int | None, of: tuple[int, ...], refused: str | None
) -> None:
    made = make_deployment(engine, picture, n=n, status=PROVISIONING, policy=CANARY)
    write(engine, "UPDATE rollouts SET weight = %s", weight)
    with transaction(engine) as connection:
        assert code_of(connection, DRAIN, made, of) == refused
