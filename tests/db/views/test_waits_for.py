"""The verb that a deployment waits for is that of its own decision, whatever else is looked at meanwhile."""

from functools import partial
from typing import LiteralString

import pytest
from sqlalchemy import Engine

from db.connection.engine import in_transaction
from db.views.deployments import deployment_named
from tests.support.pictures.pictures import PROVISIONING, blue_green, rolling_update
from tests.support.rows.deployments import make_deployment

_STANDS: LiteralString = "UPDATE rollouts SET clock_stopped_at = clock_timestamp() WHERE id = %s"
_NEXT_LOOK: LiteralString = "UPDATE deployments SET due_at = clock_timestamp() + %s * interval '1 second' WHERE id = %s"


@pytest.mark.parametrize(
    ("picture", "auto", "due_in", "verb"),
    [
        ("■■■|□□□", False, None, "promote"),
        ("■■▲|□□□", False, 3, "promote"),  # it is looked at for the sick one, and still waits for a person
        ("■■■|□□□", False, 9, ""),  # nothing that it waits for is due then: a hold is on
        ("■■■|□□□", True, None, ""),
        ("■■■|◌◌◌", False, None, ""),
    ],
)
def test_only_what_its_own_decision_waits_for_a_person_for_waits_for_one(
    engine: Engine, picture: str, *, auto: bool, due_in: float | None, verb: str
) -> None:
    policy = blue_green(auto_promote=auto)
    made = make_deployment(engine, picture, status=PROVISIONING, policy=policy.as_json(), status_for=10)
    in_transaction(engine, lambda connection: connection.execute(_STANDS, (made.rollout_id,)))
    in_transaction(engine, lambda connection: connection.execute(_NEXT_LOOK, (due_in, made.id)))
    assert in_transaction(engine, partial(deployment_named, name="web")).waits_for == verb


def test_a_rolling_update_whose_clock_stands_waits_for_nobody(engine: Engine) -> None:
    made = make_deployment(engine, "■■|◇", status=PROVISIONING, policy=rolling_update().as_json())
    in_transaction(engine, lambda connection: connection.execute(_STANDS, (made.rollout_id,)))
    assert in_transaction(engine, partial(deployment_named, name="web")).waits_for == ""
