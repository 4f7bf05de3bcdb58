"""What SQL finds to be off is what the domain finds to be so: the long tick marks no deployment that is right."""

from dataclasses import dataclass
from datetime import datetime
from itertools import count
from uuid import UUID

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine

from db.connection.transactions import transaction
from db.cycle.claim import claim_these, load, mark_what_is_off
from domain.handlers.check_replica import drift
from domain.model.deployment import Deployment
from domain.model.states import RouteStatus, Verdict
from tests.support.pictures.pictures import READY
from tests.support.rows.deployments import EMPTIED, HERE, make_deployment, read, write
from tests.support.rows.hosts import drain, up

SICK = {RouteStatus.UNHEALTHY, RouteStatus.DEGRADED}
_numbers = count()


@dataclass(frozen=True)
class Case:
    """`parked`: seconds from now until which the routes without traffic are parked; None for never."""

    picture: str
    n: int
    status_for: float = 3600
    parked: int | None = None
    degraded: bool = False
    retry_in: int = -60


SYMBOLS = "■□◌△▲◇✗~▣◈"
ANYTHING = st.tuples(st.text(SYMBOLS, max_size=3), st.text(SYMBOLS, max_size=4), st.integers(0, 4))
NEARLY_RIGHT = st.builds(
    lambda old, n, more: (old, "■" * n + more, n),
    st.text("□~", max_size=2),
    st.integers(0, 3),
    st.text("✗~◇", max_size=1),
)
CASES = st.builds(
    lambda drawn, *settings: Case(f"{drawn[0]}|{drawn[1]}", drawn[2], *settings),
    st.one_of(ANYTHING, NEARLY_RIGHT),
    st.sampled_from([5.0, 3600.0]),
    st.sampled_from([None, 3600, -60]),
    st.booleans(),
    st.sampled_from([-60, 3600]),
)


def make(engine: Engine, case: Case) -> UUID:
    made = make_deployment(engine, case.picture, name=f"web-{next(_numbers)}", n=case.n, status_for=case.status_for)
    park = """
        UPDATE routes SET parked_until = clock_timestamp() + %s * interval '1 second'
         WHERE deployment_id = %s AND traffic_status = 'inactive'
    """
    if case.parked is not None:
        write(engine, park, case.parked, made.id)
    degrade = """
        UPDATE deployments SET degraded_reason = 'tired', retry_at = clock_timestamp() + %s * interval '1 second'
         WHERE id = %s
    """
    if case.degraded:
        write(engine, degrade, case.retry_in, made.id)
    return made.id


def is_off(deployment: Deployment, now: datetime) -> bool:
    """As the domain has it; and sick replicas, whose grace SQL does not wait for."""
    given_up = deployment.retry_at is not None and now < deployment.retry_at
    sick = any(route.status in SICK for route in deployment.routes)
    return drift(deployment, now).verdict is Verdict.SUCCESS or (sick and not given_up)


def check(engine: Engine, cases: list[Case]) -> None:
    up(engine, HERE, EMPTIED)
    drain(engine, EMPTIED)
    ids = [make(engine, case) for case in cases]
    write(engine, "UPDATE deployments SET due_at = NULL")
    with transaction(engine) as connection:
        claim = claim_these(connection, ids)
        deployments = load(connection, claim.deployments)
        expected = {deployment.id for deployment in deployments if is_off(deployment, claim.now)}
    with transaction(engine) as connection:
        mark_what_is_off(connection, [READY])
    marked = {row["id"] for row in read(engine, "SELECT id FROM deployments WHERE due_at IS NOT NULL")}
    told = {case for made, case in zip(ids, cases, strict=True) if (made in marked) != (made in expected)}
    assert not told, told


@settings(
    max_examples=20,
    deadline=None,
    phases=[Phase.generate],  # twenty deployments an example: to make it smaller would take minutes
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(CASES, min_size=20, max_size=20))
def test_sql_and_the_domain_find_the_same_deployments_to_be_off(engine: Engine, cases: list[Case]) -> None:
    check(engine, cases)


@pytest.mark.parametrize(
    ("case", "marked"),
    [
        pytest.param(Case("□□□|■■■", 3, parked=3600), False, id="blue is kept for a way back"),
        pytest.param(Case("□□□|■■■", 3, parked=-60), True, id="blue has been kept long enough"),
        pytest.param(Case("□□□|■■■", 3), True, id="another revision that nobody parked"),
        pytest.param(Case("|■■□", 3, parked=3600), True, id="its own are parked"),
        pytest.param(Case("■■◇", 3), False, id="one is starting"),
        pytest.param(Case("■■■", 3), False, id="all are well"),
        pytest.param(Case("~|■■■~", 3), False, id="some are stopping"),
        pytest.param(Case("■■■✗", 3), False, id="one has failed"),
        pytest.param(Case("", 3), True, id="none is there"),
        pytest.param(Case("■■~", 3), True, id="one is missing"),
        pytest.param(Case("■■■■", 3), True, id="one is too many"),
        pytest.param(Case("■■▲", 3), True, id="one is unhealthy"),
        pytest.param(Case("■■△", 3), True, id="one is degraded"),
        pytest.param(Case("■■□", 3), True, id="one is out of traffic"),
        pytest.param(Case("■|■■", 3), True, id="one is of another revision"),
        pytest.param(Case("■|■■■", 3), True, id="another revision is there too"),
        pytest.param(Case("■■■", 3, degraded=True), True, id="the mark can go"),
        pytest.param(Case("■■", 3, degraded=True, retry_in=3600), False, id="given up lately"),
        pytest.param(Case("▣■■", 3), True, id="one is on a drained host"),
        pytest.param(Case("▣|■■■", 3, parked=3600), True, id="a parked one is on a drained host"),
    ],
)
def test_a_deployment_is_marked_when_it_is_off(engine: Engine, case: Case, *, marked: bool) -> None:
    up(engine, HERE, EMPTIED)
    drain(engine, EMPTIED)
    make(engine, case)
    write(engine, "UPDATE deployments SET due_at = NULL")
    with transaction(engine) as connection:
        assert bool(mark_what_is_off(connection, [READY])) is marked
