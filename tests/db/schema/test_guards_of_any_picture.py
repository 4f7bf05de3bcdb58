"""Of any picture and any statement, the trigger and an oracle of a dozen lines say the same."""

from collections.abc import Sequence
from dataclasses import replace
from typing import LiteralString

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine

from db.connection.transactions import transaction
from domain.strategies.budget import Budget, resting_budget, surge_budget
from tests.support.pictures.pictures import PROVISIONING, READY, ROLLING_BACK, SCALING
from tests.support.rows.deployments import make_deployment, read
from tests.support.rows.route_statements import (
    CEILING,
    CREATE,
    CREATE_PARKED,
    DRAIN,
    FAIL,
    FALL_ILL,
    FLOOR,
    LEAVE_TRAFFIC,
    PARK,
    STOP_AT_ONCE,
    code_of,
)

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
