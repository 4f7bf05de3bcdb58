"""The verb that a deployment waits for is that of the last look's decision, and of no other."""

from functools import partial

import pytest
from sqlalchemy import Engine

from db.connection.transactions import in_transaction
from db.fleet_measures import read_fleet
from db.views.deployment_views import deployment_named
from tests.support.people.promoted import green_waits
from tests.support.pictures.pictures import PROVISIONING, blue_green, rolling_update
from tests.support.rows.deployments import ask, make_deployment
from tests.support.rows.windows import freeze, thaw
from tests.support.workers.coordinators import coordinator_without_redis, run_until_quiet


def waits_for(engine: Engine) -> str:
    return in_transaction(engine, partial(deployment_named, name="web")).waits_for


@pytest.mark.parametrize(
    ("picture", "auto", "verb"),
    [
        ("■■■|□□□", False, "promote"),
        ("■■▲|□□□", False, "promote"),  # it is looked at for the sick one, and still waits for a person
        ("■■■|□□□", True, ""),
        ("■■■|◌◌◌", False, ""),
    ],
)
def test_only_what_its_own_decision_waits_for_a_person_for_waits_for_one(
    engine: Engine, picture: str, *, auto: bool, verb: str
) -> None:
    make_deployment(engine, picture, status=PROVISIONING, policy=blue_green(auto_promote=auto).as_json(), status_for=10)
    run_until_quiet(coordinator_without_redis(engine))
    assert waits_for(engine) == verb


def test_a_rollout_that_is_held_or_goes_on_waits_for_nobody_and_the_fleet_is_told_so(engine: Engine) -> None:
    green_waits(engine)
    assert (waits_for(engine), rollouts_open(engine)) == ("promote", {"waits": 1})
    freeze(engine, pauses=True)
    run_until_quiet(coordinator_without_redis(engine))
    assert (waits_for(engine), rollouts_open(engine)) == ("", {"held": 1})
    thaw(engine)
    run_until_quiet(coordinator_without_redis(engine))
    assert waits_for(engine) == "promote"
    ask(engine, "pause", deployment="web")
    assert (waits_for(engine), rollouts_open(engine)) == ("resume", {"waits": 1})
    ask(engine, "resume", deployment="web")
    run_until_quiet(coordinator_without_redis(engine))
    assert waits_for(engine) == "promote"
    ask(engine, "promote", deployment="web")
    assert (waits_for(engine), rollouts_open(engine)) == ("", {"held": 1})
    run_until_quiet(coordinator_without_redis(engine))
    assert (waits_for(engine), rollouts_open(engine)) == ("", {})


def rollouts_open(engine: Engine) -> dict[str, float]:
    samples = in_transaction(engine, read_fleet).samples["rollway_rollouts_open"]
    return {state: number for (state,), number in samples if number}


def test_a_rolling_update_waits_for_nobody(engine: Engine) -> None:
    make_deployment(engine, "■■|◇", status=PROVISIONING, policy=rolling_update().as_json())
    run_until_quiet(coordinator_without_redis(engine))
    assert waits_for(engine) == ""
