"""The places of a group with several at work at once."""

import threading
from functools import partial

import pytest
from sqlalchemy import Engine

from db.connection.transactions import transaction
from db.cycle.claim import Claimed, claim_these
from tests.support.pictures.pictures import PROVISIONING
from tests.support.rows.databases import engine_on
from tests.support.rows.deployments import ask, make_deployment, mark, read, start_all, write
from tests.support.rows.windows import begin
from tests.support.stack.waiting import eventually
from tests.support.workers.coordinators import (
    assert_nothing_happened_twice,
    coordinator_without_redis,
    handler_for,
    run_until_quiet,
)
from tests.tasks.cycle.test_two_coordinators import at_once

BLOCKED = "SELECT FROM pg_locks WHERE NOT granted"
UNDER_WAY = "SELECT count(*) AS c FROM rollouts WHERE outcome IS NULL AND steps > 0"


@pytest.mark.parametrize("most", [1, 2])
def test_two_coordinators_at_once_never_let_more_roll_out_than_the_group_has_places(
    engine: Engine, database: str, most: int
) -> None:
    names = [f"web-{number}" for number in range(8)]
    ids = [make_deployment(engine, "■", n=1, name=name).id for name in names]
    ask(engine, "set_group", group="shop", deployments=names, most_at_once=most)
    run_until_quiet(coordinator_without_redis(engine))
    begin(engine, *names)
    both = [engine_on(database) for _ in range(2)]
    two = [coordinator_without_redis(own, chunk=3) for own in both]
    seen, handler = set(), handler_for(PROVISIONING)
    for _ in range(120):
        mark(engine, *ids)
        at_once([partial(coordinator.process_chunk, handler) for coordinator in two])
        seen.add(read(engine, UNDER_WAY)[0]["c"])
        start_all(engine)
        if read(engine, "SELECT FROM rollouts WHERE outcome IS NULL") == []:
            break
    for own in both:
        own.dispose()
    assert max(seen) == most
    assert read(engine, "SELECT DISTINCT outcome FROM rollouts") == [{"outcome": "completed"}]
    assert_nothing_happened_twice(engine)


def test_who_asks_for_the_last_place_waits_for_whoever_is_just_taking_it(engine: Engine, database: str) -> None:
    """b may go, since a, who asked first, is paused; before b has moved, a is resumed and looked at too."""
    a, b = (make_deployment(engine, "■■■", name=name) for name in ("a", "b"))
    ask(engine, "set_group", group="shop", deployments=["a", "b"], most_at_once=1)
    begin(engine, "a", "b")
    ask(engine, "pause", deployment="a")
    other, found = engine_on(database), list[Claimed]()

    def look_at_a() -> None:
        with transaction(other) as connection:
            found.extend(claim_these(connection, [a.id]).deployments)

    looking = threading.Thread(target=look_at_a)
    with transaction(engine) as connection:
        (claimed,) = claim_these(connection, [b.id]).deployments
        assert claimed.hold is None
        write(other, "UPDATE deployments SET paused_at = NULL WHERE name = 'a'")
        looking.start()
        eventually(lambda: not looking.is_alive() or read(other, BLOCKED), what="a waits or continues")
        connection.execute("UPDATE rollouts SET steps = 1 WHERE deployment_id = %s", (b.id,))
    looking.join(10)
    other.dispose()
    assert found[0].hold is not None
    assert found[0].hold.reason == "waits for the rollout of b: group shop has at most 1 at once"
