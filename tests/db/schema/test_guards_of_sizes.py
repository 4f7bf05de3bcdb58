"""The budget that Postgres enforces goes with the sizes of a rollout."""

import pytest
from sqlalchemy import Engine

from db.connection.transactions import transaction
from tests.support.pictures.pictures import PROVISIONING
from tests.support.pictures.policies import BLUE_GREEN
from tests.support.rows.deployments import ask, make_deployment, read, write
from tests.support.rows.route_statements import CEILING, CREATE, DRAIN, FLOOR, code_of


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
    """Forward: blue's 3 and green's n; back: blue's 3 twice. A promotion keeps the smaller of both serving."""
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
